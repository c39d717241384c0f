package ovsd

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

func TestFarAddresses(t *testing.T) {
	a := netip.MustParseAddr
	for _, c := range []struct {
		own       []netip.Addr
		four, six netip.Addr
	}{
		{nil, netip.Addr{}, netip.Addr{}},
		{[]netip.Addr{a("192.168.2.10"), a("10.0.0.1")}, a("192.168.2.10"), a("fd63:6f6e:7469:ffff::c0a8:20a")},
		{[]netip.Addr{a("2001:db8::1"), a("10.0.0.1")}, a("10.0.0.1"), a("2001:db8::1")},
		{[]netip.Addr{a("2001:db8::1"), {}}, netip.Addr{}, a("2001:db8::1")},
	} {
		if four, six := farAddrs(c.own...); four != c.four || six != c.six {
			t.Errorf("a host with %v is %s and %s among hosts, expected %s and %s", c.own, four, six, c.four, c.six)
		}
	}
}

// Of networks with the same addresses the host means that of the first tenant.
func TestMeant(t *testing.T) {
	net := func(tenant, name, subnet string) drivers.Network {
		return drivers.Network{
			Network: ofnet.Network{ID: name + "." + tenant, Encap: ofnet.VXLAN, Subnet4: netip.MustParsePrefix(subnet)},
			Tenant:  tenant, Name: name,
		}
	}
	d := &Driver{networks: map[string]drivers.Network{}}
	for _, n := range []drivers.Network{
		net("blue", "a", "10.1.0.0/16"), net("default", "b", "10.1.2.0/24"), net("blue", "c", "10.2.0.0/24"), net("red", "d", "10.2.0.0/24"),
	} {
		d.networks[n.ID] = n
	}
	for id, want := range map[string]bool{"a.blue": false, "b.default": true, "c.blue": true, "d.red": false} {
		if got := d.meant(d.networks[id]); got != want {
			t.Errorf("network %s: meant %v, expected %v", id, got, want)
		}
	}
}
