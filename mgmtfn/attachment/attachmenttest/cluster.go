// Package attachmenttest provides a cluster for tests of an Attacher.
package attachmenttest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Cluster is netmaster, agent and driver in one: endpoints are kept in a map, ports are
// real veth pairs with names that a real agent does not use.
type Cluster struct {
	Net drivers.Network // the only network

	mu        sync.Mutex
	endpoints map[string]state.Endpoint
	ports     map[string]drivers.Attachment
	failing   map[Call]error
	next      int
	asked     int
}

// Call identifies a call that can be made to fail.
type Call int

// The calls; Ready includes Realised and Serving.
const (
	Create Call = iota
	Delete
	Attach
	Detach
	Ready
)

// Fail makes a call return err from now on, nil for none.
func (w *Cluster) Fail(c Call, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing[c] = err
}

func (w *Cluster) failure(c Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing[c]
}

// New creates a Cluster with one network, net1 of tenant default; its ports end with the
// test.
func New(t testing.TB) *Cluster {
	w := &Cluster{
		Net: drivers.Network{
			Network: ofnet.Network{
				ID: "net1.default", Encap: ofnet.VXLAN,
				Subnet4: netip.MustParsePrefix("10.1.1.0/24"), Gateway4: netip.MustParseAddr("10.1.1.254"),
				Subnet6: netip.MustParsePrefix("2001:db8::/100"),
			},
			Tenant: "default", Name: "net1",
		},
		endpoints: map[string]state.Endpoint{}, ports: map[string]drivers.Attachment{}, failing: map[Call]error{},
	}
	t.Cleanup(func() {
		w.Fail(Detach, nil)
		for id := range w.ports {
			_ = w.Detach(context.Background(), id)
		}
	})
	return w
}

func (w *Cluster) CreateEndpoint(_ context.Context, req masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failing[Create]; err != nil {
		return state.Endpoint{}, err
	}
	id := state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.ConfigEP.Container)
	if ep, ok := w.endpoints[id]; ok {
		return ep, nil
	}
	w.next++
	ep := state.Endpoint{
		ID: id, NetID: state.NetworkID(req.NetworkName, req.TenantName), EndpointID: req.ConfigEP.Container, HomingHost: req.ConfigEP.Host,
		IPAddress: fmt.Sprintf("10.1.1.%d", w.next), MacAddress: fmt.Sprintf("02:02:0a:01:01:%02x", w.next),
	}
	if w.Net.Subnet6.IsValid() {
		ep.IPv6Address = fmt.Sprintf("2001:db8::%d", w.next)
	}
	w.endpoints[id] = ep
	return ep, nil
}

func (w *Cluster) DeleteEndpoint(_ context.Context, req masterapi.DeleteEndpointRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failing[Delete]; err != nil {
		return err
	}
	delete(w.endpoints, state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.EndpointID))
	return nil
}

func (w *Cluster) Network(_ context.Context, id string) (drivers.Network, error) {
	if id != w.Net.ID {
		return drivers.Network{}, errs.New(errs.NotFound, "network %s is not known on this host", id)
	}
	return w.Net, nil
}

func (w *Cluster) KnownNetwork(id string) (drivers.Network, bool) { return w.Net, id == w.Net.ID }

func (w *Cluster) LocalEndpoints() []state.Endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []state.Endpoint
	for _, ep := range w.endpoints {
		out = append(out, ep)
	}
	return out
}

func (w *Cluster) PortsChanged() {}
func (w *Cluster) Ready() error  { return w.failure(Ready) }

func (w *Cluster) Serving() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.failing[Ready]
}

// Asked counts the calls of Serving.
func (w *Cluster) Asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *Cluster) Attach(_ context.Context, a drivers.Attachment, _ ofnet.Encap, _ uint16) (drivers.Port, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failing[Attach]; err != nil {
		return drivers.Port{}, err
	}
	if have, ok := w.ports[a.EndpointID]; ok {
		return have.Port, nil
	}
	a.Port = drivers.Port{OVSName: fmt.Sprintf("ts%d-%d", len(w.ports), os.Getpid()), MTU: 1450}
	host, err := ns.GetCurrentNS()
	if err != nil {
		return drivers.Port{}, err
	}
	defer host.Close()
	err = ns.WithNetNSPath(a.Netns, func(ns.NetNS) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = a.IfName, 1450
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: a.Port.OVSName, PeerNamespace: netlink.NsFd(int(host.Fd()))})
	})
	if err != nil {
		return drivers.Port{}, err
	}
	w.ports[a.EndpointID] = a
	return a.Port, nil
}

func (w *Cluster) Detach(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failing[Detach]; err != nil {
		return err
	}
	a, ok := w.ports[id]
	if !ok {
		return nil
	}
	delete(w.ports, id)
	if link, err := netlinksafe.LinkByName(a.Port.OVSName); err == nil {
		return netlink.LinkDel(link)
	}
	return nil
}

func (w *Cluster) Attachments() []drivers.Attachment {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []drivers.Attachment
	for _, a := range w.ports {
		out = append(out, a)
	}
	return out
}

func (w *Cluster) Realised(context.Context, string) error { return w.failure(Ready) }

// Adopt adds a port that nobody has requested.
func (w *Cluster) Adopt(a drivers.Attachment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ports[a.EndpointID] = a
}

// Counts returns the numbers of endpoints and ports.
func (w *Cluster) Counts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d endpoints, %d ports", len(w.endpoints), len(w.ports))
}
