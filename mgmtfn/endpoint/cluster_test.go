package endpoint

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// cluster is netmaster and an agent in one: each immediately knows what the other writes.
type cluster struct {
	*fakedriver.Driver

	mu       sync.Mutex
	networks map[string]drivers.Network
	records  map[string]state.Endpoint
	homes    map[string]string // host of records created elsewhere, by id
	down     error             // what netmaster answers, if it does not serve
	asked    []string          // of netmaster: create or delete <tenant> <network> <name>
	changed  signal.Signal
}

func newCluster(refs ...state.NetworkRef) *cluster {
	c := &cluster{
		Driver: fakedriver.New(), networks: map[string]drivers.Network{}, records: map[string]state.Endpoint{}, homes: map[string]string{},
	}
	for _, r := range refs {
		c.networks[r.NetworkID()] = drivers.Network{Network: ofnet.Network{ID: r.NetworkID()}, Tenant: r.Tenant, Name: r.Network}
	}
	return c
}

func (c *cluster) manager(t *testing.T) *Manager {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(Config{HostLabel: "host1", Master: c, Agent: c, Ports: c, PortsChanged: func() {}, Log: log})
}

func (c *cluster) with(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

func (c *cluster) CreateEndpoint(ctx context.Context, req masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ask(ctx, "create", req.TenantName, req.NetworkName, req.EndpointID); err != nil {
		return state.Endpoint{}, err
	}
	netID := state.NetworkID(req.NetworkName, req.TenantName)
	if _, ok := c.networks[netID]; !ok {
		return state.Endpoint{}, errs.New(errs.NotFound, "key not found: network %s", netID)
	}
	rec := state.Endpoint{ID: state.EndpointID(netID, req.EndpointID), NetID: netID, EndpointID: req.EndpointID, HomingHost: req.ConfigEP.Host, ServiceName: req.ServiceName}
	if home := c.homes[rec.ID]; home != "" {
		rec.HomingHost = home
		return rec, nil
	}
	c.records[rec.ID] = rec
	return rec, nil
}

func (c *cluster) DeleteEndpoint(ctx context.Context, req masterapi.DeleteEndpointRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ask(ctx, "delete", req.TenantName, req.NetworkName, req.EndpointID); err != nil {
		return err
	}
	delete(c.records, state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.EndpointID))
	return nil
}

func (c *cluster) ask(ctx context.Context, what ...string) error {
	if ctx.Err() != nil {
		return errs.Wrap(errs.Unavailable, ctx.Err())
	}
	if c.down != nil {
		return c.down
	}
	c.asked = append(c.asked, strings.Join(what, " "))
	return nil
}

func (c *cluster) Network(ctx context.Context, id string) (drivers.Network, error) {
	for {
		changed := c.changed.Next()
		if n, ok := c.KnownNetwork(id); ok {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return drivers.Network{}, errs.New(errs.NotFound, "network %s is not known on this host", id)
		}
	}
}

func (c *cluster) KnownNetwork(id string) (drivers.Network, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.networks[id]
	return n, ok
}

func (c *cluster) LocalEndpoints() []state.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.records))
}

// left returns what exists: the ids of records, and those of ports.
func (c *cluster) left() string {
	records, ports := []string{}, []string{}
	for _, rec := range c.LocalEndpoints() {
		records = append(records, rec.ID)
	}
	for _, at := range c.Attachments() {
		ports = append(ports, at.EndpointID)
	}
	slices.Sort(records)
	slices.Sort(ports)
	return fmt.Sprintf("records %v ports %v", records, ports)
}
