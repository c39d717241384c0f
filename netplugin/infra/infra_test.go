package infra

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/signal"
)

// cluster is an agent and a netmaster that refuses the first call.
type cluster struct {
	mu      sync.Mutex
	missing []drivers.Network
	changed signal.Signal
	refused bool
	calls   []masterapi.CreateEndpointRequest
	called  chan struct{}
}

func (c *cluster) MissingInfra() ([]drivers.Network, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.missing), c.changed.Next()
}

func (c *cluster) CreateEndpoint(_ context.Context, req masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.called <- struct{}{} }()
	c.calls = append(c.calls, req)
	if !c.refused {
		c.refused = true
		return state.Endpoint{}, errors.New("no address left")
	}
	c.missing = slices.DeleteFunc(c.missing, func(n drivers.Network) bool { return n.Name == req.NetworkName })
	return state.Endpoint{}, nil
}

// set says what is missing from now on.
func (c *cluster) set(networks ...drivers.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = networks
	c.changed.Broadcast()
}

// The host gets an endpoint in each infra network, at once or when netmaster lets it.
func TestKeep(t *testing.T) {
	c := &cluster{called: make(chan struct{}, 16)}
	log, lines := test.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Keep(ctx, "h1", c, c, log) }()
	c.set(drivers.Network{Network: ofnet.Network{ID: "contivh1.default"}, Tenant: "default", Name: "contivh1", Infra: true})
	<-c.called // refused
	<-c.called
	c.set(drivers.Network{Network: ofnet.Network{ID: "mgmt.blue"}, Tenant: "blue", Name: "mgmt", Infra: true})
	<-c.called
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	request := func(tenant, network string) masterapi.CreateEndpointRequest {
		return masterapi.CreateEndpointRequest{
			TenantName: tenant, NetworkName: network, EndpointID: "h1", EPCommonName: "h1",
			ConfigEP: masterapi.ConfigEP{Container: "h1", Host: "h1"},
		}
	}
	want := []masterapi.CreateEndpointRequest{request("default", "contivh1"), request("default", "contivh1"), request("blue", "mgmt")}
	if diff := cmp.Diff(want, c.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if n := len(lines.AllEntries()); n != 1 || lines.LastEntry().Level != logrus.WarnLevel {
		t.Errorf("%d log lines, expected one warning about the refusal", n)
	}
}
