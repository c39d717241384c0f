package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

// TestNoAddressTwice lets clients create and delete endpoints at random over a subnet
// that has fewer addresses than they want. At no time do two of them hold the same
// address; in the end none is lost.
func TestNoAddressTwice(t *testing.T) {
	for name, store := range map[string]objdb.Store{"memory": memory.New(), "embedded": openEmbedded(t)} {
		t.Run(name, func(t *testing.T) { churn(t, store) })
	}
}

const (
	churnClients = 16
	churnSteps   = 60
	churnKeep    = 3 // endpoints a client holds at most: 48 over 29 addresses
)

func churn(t *testing.T, store objdb.Store) {
	c, err := client.New(client.Config{URLs: []string{apitest.Start(t, store, apitest.Config(apitest.Log(t)))}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	n := &contivmodel.Network{TenantName: "default", NetworkName: "n", Encap: "vxlan", Subnet: "10.1.1.0/27", Gateway: "10.1.1.30", IPv6Subnet: "2001:db8::/122"}
	if _, err := client.Put(ctx, c, contivmodel.NetworkKind(), n); err != nil {
		t.Fatal(err)
	}
	held := &holders{owner: map[string]string{}}
	g, gctx := errgroup.WithContext(ctx)
	for i := range churnClients {
		g.Go(func() error { return held.churn(gctx, c, fmt.Sprint("client", i), rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if held.refused == 0 {
		t.Error("the subnet was never full: nothing was tested")
	}
	checkClaims(t, store, held.owner)
	for addr, owner := range held.owner {
		if !strings.Contains(addr, ":") {
			if _, _, err := c.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: owner}); err != nil {
				t.Error(err)
			}
		}
	}
	checkClaims(t, store, nil)
	if err := client.Delete(ctx, c, contivmodel.NetworkKind(), "default:n"); err != nil {
		t.Error(err)
	}
	if kvs, _, err := store.List(ctx, state.IPAMRoot); err != nil || len(kvs) != 0 {
		t.Errorf("%d claims are left of a network that is gone, %v", len(kvs), err)
	}
}

// holders is who holds which address, as the clients know it.
type holders struct {
	mu      sync.Mutex
	owner   map[string]string // address → container
	refused int
}

func (h *holders) churn(ctx context.Context, c *client.Client, name string, rnd *rand.Rand) error {
	var mine []string
	until := time.Now()
	if os.Getenv("CONTIV_LONG") != "" { // make test-long
		until = until.Add(time.Minute)
	}
	for step := 0; step < churnSteps || time.Now().Before(until); step++ {
		if len(mine) < churnKeep && rnd.IntN(3) > 0 {
			container := fmt.Sprintf("%s-%d", name, step)
			resp, _, err := c.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
				TenantName: "default", NetworkName: "n", ConfigEP: masterapi.ConfigEP{Container: container, Host: name},
			})
			var refused *client.Error
			switch {
			case errors.As(err, &refused) && strings.Contains(refused.Text, "address exhaustion"):
				h.mu.Lock()
				h.refused++
				h.mu.Unlock()
				continue
			case err != nil:
				return err
			}
			if err := h.take(container, resp.EndpointConfig.IPAddress, resp.EndpointConfig.IPv6Address); err != nil {
				return err
			}
			mine = append(mine, container)
		} else if len(mine) > 0 {
			i := rnd.IntN(len(mine))
			// Given up before the request: from then on somebody else may get it.
			h.give(mine[i])
			if _, _, err := c.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: mine[i]}); err != nil {
				return err
			}
			mine = append(mine[:i], mine[i+1:]...)
		}
	}
	return nil
}

func (h *holders) take(container string, addrs ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range addrs {
		if other, ok := h.owner[a]; ok {
			return fmt.Errorf("%s was given to %s while %s has it", a, container, other)
		}
		h.owner[a] = container
	}
	return nil
}

func (h *holders) give(container string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, owner := range h.owner {
		if owner == container {
			delete(h.owner, a)
		}
	}
}

// checkClaims holds the claims in the store to what the clients hold.
func checkClaims(t *testing.T, store objdb.Store, held map[string]string) {
	t.Helper()
	kvs, _, err := store.List(t.Context(), state.IPAMRoot+"n.default/")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range kvs {
		var claim state.AddressClaim
		if err := json.Unmarshal(kv.Value, &claim); err != nil {
			t.Fatal(err)
		}
		addr := kv.Key[len(state.IPAMRoot+"n.default/"):]
		if claim.Owner != "gateway" && claim.Owner != "endpoint/n.default-"+held[addr] {
			t.Errorf("%s is claimed by %s, held by %q", addr, claim.Owner, held[addr])
		}
	}
	if len(kvs) != len(held)+1 {
		t.Errorf("%d claims, %d addresses are held and 1 is the gateway's", len(kvs), len(held))
	}
}
