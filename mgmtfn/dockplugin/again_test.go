package dockplugin

import (
	"testing"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
)

// TestAddressCanBeAskedForAgain: an agent has reserved an address and was killed before the
// Engine had its reply; the Engine asks the next agent, and gets the address.
func TestAddressCanBeAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	ask := func() error {
		return call200(w.server, "/IpamDriver.RequestAddress", cnm.RequestAddressRequest{PoolID: "net1.default|10.1.1.0/24", Address: "10.1.1.7"}, nil)
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if ask() == nil {
		t.Error("an address that a container has got is handed out again")
	}
	w.stop()
	w.start()
	if err := ask(); err != nil {
		t.Errorf("after the agent was killed: %v", err)
	}
}
