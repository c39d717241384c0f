package inspect

import (
	"context"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/utils/errs"
)

// Ports are what endpoints of this host are attached by.
type Ports interface {
	Attachments() []drivers.Attachment
	Detach(ctx context.Context, endpointID string) error
}

// Reclaim takes the port of an endpoint away. NotFound if it has none, be it because it
// was reclaimed before.
func Reclaim(p Ports) func(ctx context.Context, endpointID string) error {
	return func(ctx context.Context, endpointID string) error {
		for _, a := range p.Attachments() {
			if a.EndpointID == endpointID {
				return p.Detach(ctx, endpointID)
			}
		}
		return errs.New(errs.NotFound, "endpoint %s has no port on this host", endpointID)
	}
}
