package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state"
)

// DefaultNetwork is the network of containers that name none.
const DefaultNetwork = "default-net"

// makeDefaultNetwork creates a network in a cluster that has none for containers yet. One
// that was deleted does not come back as long as there is another.
func makeDefaultNetwork(ctx context.Context, e *intent.Engine, n contivmodel.Network) error {
	for _, c := range e.Collections() {
		all, ok := c.List(nil).([]*contivmodel.Network)
		if !ok {
			continue
		}
		for _, other := range all {
			if other.NwType != state.NetworkInfra {
				return nil
			}
		}
		body, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if _, err := c.Put(ctx, n.TenantName+":"+n.NetworkName, body); err != nil {
			return fmt.Errorf("create the default network: %w", err)
		}
	}
	return nil
}
