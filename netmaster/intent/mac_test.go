package intent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// TestMACAddresses: a MAC address that is asked for must be free in the network, now and when
// other addresses come to be used, and never that of the router, of the name server or of a host.
func TestMACAddresses(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer func() { stop() }()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	e.mustNetwork(t, "other", "10.2.1.0/24")
	ask := func(net, container, addr, mac string) error {
		req := endpoint(net, "", container, addr)
		req.ConfigEP.MacAddress = mac
		_, err := e.CreateEndpoint(t.Context(), req)
		return err
	}
	for _, c := range []struct {
		net, container, addr, mac string
		refused                   string // what the error names
	}{
		{"n", "a", "", "02:42:ac:11:00:02", ""},
		{"n", "b", "", "02:42:AC:11:00:02", "endpoint n.default-a"},
		{"n", "b", "", "02-42-ac-11-00-02", "endpoint n.default-a"},
		{"other", "b", "", "02:42:ac:11:00:02", ""}, // another network
		{"n", "c", "10.1.1.9", "02:02:0a:01:01:09", ""},
		{"n", "d", "", "02:02:0a:01:01:09", "10.1.1.9"},
		{"n", "d", "", "02:02:0a:01:01:77", "10.1.1.119"},     // of an address that is free yet
		{"n", "d", "", "02:02:ac:13:ff:fe", "172.19.255.254"}, // of the host's own port
		{"n", "d", "", ofnet.RouterMAC.String(), "the router"},
		{"n", "d", "", strings.ToUpper(ofnet.RouterMAC.String()), "the router"},
		{"n", "d", "", ofnet.DNSMAC.String(), "the name server"},
		{"n", "d", "", ofnet.HostMAC(netip.MustParseAddr("192.168.2.10")).String(), "a host"},
		{"n", "d", "", ofnet.HostMAC(netip.MustParseAddr("2001:db8::10")).String(), "a host"},
		{"n", "d", "", "00:00:00:00:00:00", "expected the MAC address of one interface"},
		{"n", "d", "", "ff:ff:ff:ff:ff:ff", "expected the MAC address of one interface"},
		{"n", "d", "", "01:00:5e:00:00:01", "expected the MAC address of one interface"},
		{"n", "d", "", "02:00:00:00:00:00:00:01", "expected the MAC address of one interface"},
		{"n", "d", "", "00:50:56:00:00:01", ""},
	} {
		err := ask(c.net, c.container, c.addr, c.mac)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s in %s: %v", c.mac, c.net, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s in %s: %v, want a refusal that names %s", c.mac, c.net, err, c.refused)
		}
	}
	e.checkConsistent(t)
	// The address is free again with its endpoint, and taken for the next leader.
	stop()
	e, _, stop = lead(t, store)
	if err := ask("n", "b", "", "02:42:ac:11:00:02"); !errs.Is(err, errs.Conflict) {
		t.Errorf("after a change of leader: %v", err)
	}
	if _, err := e.DeleteEndpoint(t.Context(), masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "n", EndpointID: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := ask("n", "b", "", "02:42:ac:11:00:02"); err != nil {
		t.Errorf("after its endpoint has gone: %v", err)
	}
	e.checkConsistent(t)
}
