package compiler

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

func TestNodeSNATAddresses(t *testing.T) {
	a := netip.MustParseAddr
	for _, x := range []struct {
		own       []netip.Addr
		four, six netip.Addr
	}{
		{nil, netip.Addr{}, netip.Addr{}},
		{[]netip.Addr{a("192.168.2.10"), a("10.0.0.1")}, a("192.168.2.10"), a("fd63:6f6e:7469:ffff::c0a8:20a")},
		{[]netip.Addr{a("2001:db8::1"), a("10.0.0.1")}, a("10.0.0.1"), a("2001:db8::1")},
		{[]netip.Addr{a("2001:db8::1"), {}}, netip.Addr{}, a("2001:db8::1")},
	} {
		if four, six := nodeSNAT(x.own...); four != x.four || six != x.six {
			t.Errorf("a host with %v is %s and %s among hosts, expected %s and %s", x.own, four, six, x.four, x.six)
		}
	}
}

// Among networks with the same addresses, that of the first tenant owns them.
func TestOwnsSubnets(t *testing.T) {
	net := func(tenant, name, subnet string) drivers.Network {
		return drivers.Network{
			Network: ofnet.Network{ID: name + "." + tenant, Encap: ofnet.VXLAN, Subnet4: netip.MustParsePrefix(subnet)},
			Tenant:  tenant, Name: name,
		}
	}
	c := New(Config{}, Inputs{})
	for _, n := range []drivers.Network{
		net("blue", "a", "10.1.0.0/16"), net("default", "b", "10.1.2.0/24"), net("blue", "c", "10.2.0.0/24"), net("red", "d", "10.2.0.0/24"),
	} {
		c.Networks[n.ID] = n
	}
	for id, want := range map[string]bool{"a.blue": false, "b.default": true, "c.blue": true, "d.red": false} {
		if got := c.OwnsSubnets(c.Networks[id]); got != want {
			t.Errorf("network %s: owns its subnets: %v, expected %v", id, got, want)
		}
	}
}
