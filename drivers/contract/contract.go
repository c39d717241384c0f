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
)

// Driver is what is tested.
type Driver interface {
	drivers.Driver
	drivers.Ports
	drivers.Inspector
	drivers.Connections
	// Run works until ctx ends. It leaves everything running when it returns.
	Run(ctx context.Context) error
}

// Env is where drivers under test work. All of it is needed.
type Env struct {
	// New makes a driver on the same switch as the one before it, that waits for the store
	// and for these sources.
	New func(t *testing.T, sources ...drivers.Source) Driver
	// Netns makes a container's network namespace and returns its path.
	Netns func(t *testing.T) string
	// LinkExists reports whether the container has the interface.
	LinkExists func(t *testing.T, netns, name string) bool
	// Links lists the switch's ends of the ports there are.
	Links func(t *testing.T) []string
	// Flows is what the switch has for an encapsulation.
	Flows func(t *testing.T, encap ofnet.Encap) string
}

// Network and Global are what the tests declare.
var (
	Global  = drivers.Global{FwdMode: "routing", ARPMode: "proxy", PvtSubnet: netip.MustParsePrefix("172.19.0.0/16")}
	Network = drivers.Network{
		Network: ofnet.Network{
			ID: "net1.default", Encap: ofnet.VXLAN, Tag: 1, VNI: 10001,
			Subnet4: netip.MustParsePrefix("10.1.1.0/24"), Gateway4: netip.MustParseAddr("10.1.1.254"),
		},
		Tenant: "default", Name: "net1",
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
	for _, c := range []struct {
		name string
		test func(*testing.T, Env)
	}{
		{"attaching again gives the same port", attachAgain},
		{"detaching is idempotent and leaves nothing", detachTwice},
		{"an attachment keeps what it was made for", attachmentIsKept},
		{"what cannot be attached leaves nothing", cannotAttach},
		{"many at once", manyAtOnce},
		{"an endpoint is realised when declared and attached, in any order", realisedInAnyOrder},
		{"removing a declaration keeps the port", portStays},
		{"an endpoint with a policy is realised, whatever is declared first", policyInAnyOrder},
		{"a network may go before its endpoints, and come back", networkComesBack},
		{"a network comes back with another encapsulation", encapsulationChanges},
		{"nothing sent is no connection", noConnections},
		{"what a source has not declared goes when it is synced", sourcesSync},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, env) })
	}
}

// start runs a driver with the network declared until the test ends.
func start(t *testing.T, env Env, sources ...drivers.Source) Driver {
	t.Helper()
	d, _ := startAndStop(t, env, sources...)
	return d
}

// startAndStop is start for a driver that ends before the test does.
func startAndStop(t *testing.T, env Env, sources ...drivers.Source) (d Driver, stop func()) {
	t.Helper()
	d = env.New(t, sources...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	d.Apply(Global)
	d.Apply(Network)
	d.Synced(drivers.SourceStore)
	within, enough := context.WithTimeout(ctx, time.Minute)
	defer enough()
	if err := d.Flushed(within); err != nil {
		t.Fatal(err)
	}
	return d, stop
}

func attachment(endpointID, netns string) drivers.Attachment {
	return drivers.Attachment{EndpointID: endpointID, Tenant: "a.b", Network: "net.1", ContainerID: "c1", IfName: "eth0", Netns: netns}
}

func attach(t *testing.T, d Driver, endpointID, netns string) drivers.Port {
	t.Helper()
	port, err := d.Attach(long(t), attachment(endpointID, netns), ofnet.VXLAN, 1)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func detach(t *testing.T, d Driver, endpointID string) {
	t.Helper()
	if err := d.Detach(long(t), endpointID); err != nil {
		t.Fatal(err)
	}
	d.Delete(drivers.KindEndpoint, endpointID)
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
