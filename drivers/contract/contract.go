// Package contract is the test that every drivers.Driver passes, the real one and the
// one in memory, so that what is tested with the latter holds with the former.
package contract

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/errs"
)

// Env is where drivers under test work.
type Env struct {
	// New makes a driver on the same switch as the one before it.
	New func(t *testing.T) drivers.Driver
	// Netns makes a container's network namespace and returns its path.
	Netns func(t *testing.T) string
	// LinkExists reports whether the container has the interface; nil for a driver
	// that makes none.
	LinkExists func(t *testing.T, netns, name string) bool
	// Links lists the switch's ends of the ports there are; asked if LinkExists is set.
	Links func(t *testing.T) []string
	// Flows is what the switch has for an encapsulation; nil for a driver without flows.
	Flows func(t *testing.T, encap ofnet.Encap) string
}

// Network and Global are what the tests declare.
var (
	Global  = drivers.Global{FwdMode: "routing", ARPMode: "proxy", PvtSubnet: netip.MustParsePrefix("172.19.0.0/16")}
	Network = drivers.Network{
		ID: "net1.default", Tenant: "default", Name: "net1", Encap: ofnet.VXLAN, Tag: 1, VNI: 10001,
		Subnet4: netip.MustParsePrefix("10.1.1.0/24"), Gateway4: netip.MustParseAddr("10.1.1.254"),
	}
)

// Endpoint is local endpoint number i of Network.
func Endpoint(i int) drivers.Endpoint {
	return drivers.Endpoint{
		ID: fmt.Sprintf("net1.default-c%d", i), Network: Network, Local: true,
		MAC: ofnet.MAC{2, 2, 10, 1, 1, byte(i)}, IPv4: netip.AddrFrom4([4]byte{10, 1, 1, byte(i)}),
	}
}

// Run runs the tests. Each starts with a switch that the ones before have used.
func Run(t *testing.T, env Env) {
	t.Run("an endpoint is realised when declared and attached, in any order", func(t *testing.T) {
		d := start(t, env)
		for i, declareFirst := range []bool{true, false} {
			ep := Endpoint(i + 1)
			if declareFirst {
				d.SetEndpoint(ep)
			}
			if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
				t.Errorf("realised too early: %v", err)
			}
			attach(t, d, ep.ID, env.Netns(t))
			if !declareFirst {
				if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
					t.Errorf("realised before it was declared: %v", err)
				}
				d.SetEndpoint(ep)
			}
			if err := d.Realised(long(t), ep.ID); err != nil {
				t.Error(err)
			}
			detach(t, d, ep.ID)
		}
	})
	t.Run("attaching again gives the same port", func(t *testing.T) {
		d := start(t, env)
		netns := env.Netns(t)
		first := attach(t, d, "net1.default-c1", netns)
		if again := attach(t, d, "net1.default-c1", netns); again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
		if env.LinkExists != nil && !env.LinkExists(t, netns, "eth0") {
			t.Error("the container has no eth0")
		}
		if other := attach(t, d, "net1.default-c2", env.Netns(t)); other.OVSName == first.OVSName {
			t.Errorf("two endpoints share port %s", other.OVSName)
		}
		detach(t, d, "net1.default-c1")
		detach(t, d, "net1.default-c2")
	})
	t.Run("detaching is idempotent and leaves nothing", func(t *testing.T) {
		d := start(t, env)
		netns := env.Netns(t)
		attach(t, d, "net1.default-c1", netns)
		for range 3 {
			detach(t, d, "net1.default-c1")
		}
		if left := d.Attachments(); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		if env.LinkExists != nil && env.LinkExists(t, netns, "eth0") {
			t.Error("the container still has eth0")
		}
	})
	t.Run("removing a declaration keeps the port", func(t *testing.T) {
		d := start(t, env)
		ep := Endpoint(1)
		d.SetEndpoint(ep)
		attach(t, d, ep.ID, env.Netns(t))
		d.RemoveEndpoint(ep.ID)
		if len(d.Attachments()) != 1 {
			t.Errorf("attachments: %+v", d.Attachments())
		}
		if err := d.Realised(brief(t), ep.ID); !errs.Is(err, errs.Timeout) {
			t.Errorf("realised although it is no longer declared: %v", err)
		}
		detach(t, d, ep.ID)
	})
	t.Run("a guarded endpoint is realised, whatever is declared first", func(t *testing.T) {
		d := start(t, env)
		ep := Endpoint(1)
		set := drivers.PolicyRuleSet{ID: "in", Allows: []ofnet.Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}}}}
		for _, steps := range [][]func(){
			{func() { d.SetPolicyRuleSet(set) }, func() { d.SetEndpointPolicy(drivers.EndpointPolicy{EndpointID: ep.ID, In: set.ID, Out: "undeclared"}) }, func() { d.SetEndpoint(ep) }},
			{func() { d.SetEndpoint(ep) }, func() { d.SetEndpointPolicy(drivers.EndpointPolicy{EndpointID: ep.ID, In: set.ID}) }, func() { d.SetPolicyRuleSet(set) }},
		} {
			for _, step := range steps {
				step()
			}
			attach(t, d, ep.ID, env.Netns(t))
			if err := d.Realised(long(t), ep.ID); err != nil {
				t.Error(err)
			}
			detach(t, d, ep.ID)
			d.RemovePolicyRuleSet(set.ID)
			d.RemoveEndpointPolicy(ep.ID)
		}
		if err := d.Flushed(long(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("an attachment keeps what it was made for", func(t *testing.T) {
		d := start(t, env)
		netns := env.Netns(t)
		want := attachment("net1.default-c1", netns)
		want.Pod, want.PodUID, want.Config = "shop/web-0", "8392f6d1-9734-41f6-9745-706e2c59427b", "contiv-net"
		port, err := d.Attach(long(t), want, ofnet.VXLAN, 1)
		if err != nil {
			t.Fatal(err)
		}
		want.Port = port
		if got := d.Attachments(); len(got) != 1 || got[0] != want {
			t.Errorf("attachments %+v, expected %+v", got, want)
		}
		detach(t, d, "net1.default-c1")
	})
	t.Run("a network may go before its endpoints, and come back", func(t *testing.T) {
		d := start(t, env)
		ep := Endpoint(1)
		d.SetEndpoint(ep)
		netns := env.Netns(t)
		attach(t, d, ep.ID, netns)
		if err := d.Realised(long(t), ep.ID); err != nil {
			t.Fatal(err)
		}
		d.RemoveNetwork(Network.ID)
		detach(t, d, ep.ID)
		detach(t, d, ep.ID)
		if left := d.Attachments(); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		if err := d.Flushed(long(t)); err != nil {
			t.Errorf("after everything went: %v", err)
		}
		d.SetEndpoint(ep)
		d.SetNetwork(Network)
		attach(t, d, ep.ID, netns)
		if err := d.Realised(long(t), ep.ID); err != nil {
			t.Error(err)
		}
		detach(t, d, ep.ID)
	})
	t.Run("a network comes back with another encapsulation", func(t *testing.T) {
		d := start(t, env)
		flushed := func() {
			t.Helper()
			if err := d.Flushed(long(t)); err != nil {
				t.Fatal(err)
			}
		}
		flows := func(encap ofnet.Encap) string {
			t.Helper()
			flushed()
			if env.Flows == nil {
				return ""
			}
			return env.Flows(t, encap)
		}
		vlan := Network
		vlan.Encap, vlan.Tag, vlan.VNI = ofnet.VLAN, 100, 0
		far := Endpoint(2)
		far.Local, far.VTEP = false, netip.MustParseAddr("192.168.60.11")
		set := drivers.PolicyRuleSet{ID: "in", Allows: []ofnet.Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}}}}
		ep, netns := Endpoint(1), env.Netns(t)
		declare := func(n drivers.Network) {
			t.Helper()
			d.SetNetwork(n)
			far.Network, ep.Network = n, n
			d.SetEndpoint(far)
			d.SetEndpoint(ep)
			if _, err := d.Attach(long(t), attachment(ep.ID, netns), n.Encap, n.Tag); err != nil {
				t.Fatal(err)
			}
			if err := d.Realised(long(t), ep.ID); err != nil {
				t.Fatal(err)
			}
		}
		remove := func() {
			t.Helper()
			detach(t, d, ep.ID)
			d.RemoveEndpoint(far.ID)
			d.RemoveNetwork(Network.ID)
		}
		d.RemoveNetwork(Network.ID)
		d.SetPolicyRuleSet(set)
		d.SetEndpointPolicy(drivers.EndpointPolicy{EndpointID: ep.ID, In: set.ID})
		other := func(encap ofnet.Encap) ofnet.Encap { return ofnet.VXLAN + ofnet.VLAN - encap }
		empty := map[ofnet.Encap]string{ofnet.VXLAN: flows(ofnet.VXLAN), ofnet.VLAN: flows(ofnet.VLAN)}
		want := map[ofnet.Encap]string{} // what the other switch has beside a network that was never there
		for _, n := range []drivers.Network{Network, vlan} {
			declare(n)
			want[n.Encap] = flows(other(n.Encap))
			remove()
		}
		for i, n := range []drivers.Network{Network, vlan, Network, vlan} {
			declare(n) // what one look at the store shows after another: no deletion in between
			if left := flows(other(n.Encap)); left != want[n.Encap] {
				t.Errorf("round %d: flows of the former encapsulation are left:\n%s\nwant:\n%s", i, left, want[n.Encap])
			}
			if env.Flows != nil && flows(n.Encap) == empty[n.Encap] {
				t.Errorf("round %d: there are no flows", i)
			}
			if all := d.Attachments(); len(all) != 1 {
				t.Errorf("round %d: attachments %+v", i, all)
			}
		}
		remove()
		for encap, want := range empty {
			if left := flows(encap); left != want {
				t.Errorf("flows are left when all is gone:\n%s\nwant:\n%s", left, want)
			}
		}
		d.RemoveEndpointPolicy(ep.ID)
		d.RemovePolicyRuleSet(set.ID)
	})
	t.Run("what cannot be attached leaves nothing", func(t *testing.T) {
		if env.LinkExists == nil {
			return
		}
		d := start(t, env)
		netns := env.Netns(t)
		attach(t, d, "net1.default-c1", netns)
		for name, a := range map[string]drivers.Attachment{
			"an interface of that name is there": attachment("net1.default-c2", netns),
			"there is no such namespace":         attachment("net1.default-c2", netns+"x"),
		} {
			if port, err := d.Attach(long(t), a, ofnet.VXLAN, 1); err == nil {
				t.Errorf("%s: attached by %+v", name, port)
			}
			if left := d.Attachments(); len(left) != 1 {
				t.Errorf("%s: left: %+v", name, left)
			}
		}
		detach(t, d, "net1.default-c1")
		if links := env.Links(t); len(links) != 0 {
			t.Errorf("links left: %q", links)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		d := start(t, env)
		const n = 8
		type result struct {
			port drivers.Port
			err  error
		}
		results := make(chan result)
		for i := range n {
			ep := Endpoint(i + 1)
			netns := env.Netns(t)
			d.SetEndpoint(ep)
			go func() {
				port, err := d.Attach(long(t), attachment(ep.ID, netns), ofnet.VXLAN, 1)
				if err == nil {
					err = d.Realised(long(t), ep.ID)
				}
				results <- result{port, err}
			}()
		}
		ports := map[string]bool{}
		for range n {
			r := <-results
			if r.err != nil {
				t.Error(r.err)
			}
			ports[r.port.OVSName] = true
		}
		if len(ports) != n {
			t.Errorf("%d different ports for %d endpoints", len(ports), n)
		}
		for i := range n {
			detach(t, d, Endpoint(i+1).ID)
		}
	})
}

// start runs a driver with the network declared until the test ends.
func start(t *testing.T, env Env) drivers.Driver {
	t.Helper()
	d := env.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	d.SetGlobal(Global)
	d.SetNetwork(Network)
	d.Complete()
	within, enough := context.WithTimeout(ctx, time.Minute)
	defer enough()
	if err := d.Flushed(within); err != nil {
		t.Fatal(err)
	}
	return d
}

func attachment(endpointID, netns string) drivers.Attachment {
	return drivers.Attachment{EndpointID: endpointID, ContainerID: "c1", IfName: "eth0", Netns: netns}
}

func attach(t *testing.T, d drivers.Driver, endpointID, netns string) drivers.Port {
	t.Helper()
	port, err := d.Attach(long(t), attachment(endpointID, netns), ofnet.VXLAN, 1)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func detach(t *testing.T, d drivers.Driver, endpointID string) {
	t.Helper()
	if err := d.Detach(long(t), endpointID); err != nil {
		t.Fatal(err)
	}
	d.RemoveEndpoint(endpointID)
}

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func long(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
