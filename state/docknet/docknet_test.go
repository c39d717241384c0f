package docknet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/netspec"
)

func topology() Topology {
	return Topology{
		Networks: []state.Network{
			{ID: "n1.default", Tenant: "default", NetworkName: "n1", Settings: netspec.Settings{NwType: "data"}, PktTagType: "vxlan", PktTag: 3, ExtPktTag: 1003, SubnetIP: "10.1.1.0", SubnetLen: 24, Gateway: "10.1.1.254", IPv6Subnet: "2001:db8::", IPv6Len: 100, NetworkTag: "n1.default"},
			{ID: "n1.blue", Tenant: "blue", NetworkName: "n1", Settings: netspec.Settings{NwType: "data"}, PktTagType: "vlan", PktTag: 7, SubnetIP: "10.1.1.0", SubnetLen: 24, NetworkTag: "sky"},
			{ID: "infra.default", Tenant: "default", NetworkName: "infra", Settings: netspec.Settings{NwType: "infra"}, PktTagType: "vlan", SubnetIP: "10.3.1.0", SubnetLen: 24},
		},
		Groups: []state.EndpointGroup{
			{ID: "web:default", GroupName: "web", TenantName: "default", NetworkName: "n1", GroupTag: "web.default"},
			{ID: "web:blue", GroupName: "web", TenantName: "blue", NetworkName: "n1", GroupTag: "web.blue"},
			{ID: "lost:default", GroupName: "lost", TenantName: "default", NetworkName: "gone", GroupTag: "lost.default"},
		},
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]state.NetworkRef{
		"n1":          {Tenant: "default", Network: "n1"},
		"n1/blue":     {Tenant: "blue", Network: "n1"},
		"web":         {Tenant: "default", Network: "n1", Group: "web"},
		"web/blue":    {Tenant: "blue", Network: "n1", Group: "web"},
		"web.n1/blue": {Tenant: "blue", Network: "n1", Group: "web"},
		"web.n1":      {Tenant: "default", Network: "n1", Group: "web"},
	} {
		got, ok := topology().Named(name)
		if !ok || got != want || !topology().Has(got) {
			t.Errorf("%s: %+v %t, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "n2", "n1/", "n1/blue/x", "web.n2", "n1/green", "/"} {
		if got, ok := topology().Named(name); ok {
			t.Errorf("%q stands for %+v", name, got)
		}
	}
}

// TestWantedIsRecognised: what is made is found again by each of its marks, and taken for
// what it is.
func TestWantedIsRecognised(t *testing.T) {
	all := topology().Wanted("netplugin", false)
	places := map[string]state.NetworkRef{}
	for name, n := range all {
		p, ok := topology().Of(n)
		if !ok || Name(p) != name || Key(p) != n.Labels[Label] || !Ours(n) || !Same(n, n) {
			t.Errorf("%s is taken for %+v, %t", name, p, ok)
		}
		if named, ok := topology().Named(name); !ok || named != p {
			t.Errorf("%s by name is %+v", name, named)
		}
		if tagged, ok := topology().Tagged(n.Options[OptionTag]); !ok || tagged != p {
			t.Errorf("%s by tag is %+v", name, tagged)
		}
		places[name] = p
	}
	want := map[string]state.NetworkRef{"n1": {Tenant: "default", Network: "n1"}, "n1/blue": {Tenant: "blue", Network: "n1"}, "web": {Tenant: "default", Network: "n1", Group: "web"}, "web/blue": {Tenant: "blue", Network: "n1", Group: "web"}}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("wanted:\n%s", diff)
	}
	if aci := topology().Wanted("netplugin", true); len(aci) != 2 {
		t.Errorf("with an ACI fabric: %v, want the groups only", aci)
	}
	opts := map[string]string{"tenant": "blue", "network": "n1", "group": "web", "encap": "vlan", "pkt-tag": "7", "contiv-tag": "web.blue"}
	if diff := cmp.Diff(opts, all["web/blue"].Options); diff != "" {
		t.Errorf("options:\n%s", diff)
	}
	subnets := []dockerd.Subnet{
		{Prefix: netip.MustParsePrefix("10.1.1.0/24"), Gateway: netip.MustParseAddr("10.1.1.254")},
		{Prefix: netip.MustParsePrefix("2001:db8::/100")},
	}
	if diff := cmp.Diff(subnets, all["n1"].Subnets, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" || !all["n1"].IPv6 || all["n1/blue"].IPv6 {
		t.Errorf("subnets:\n%s", diff)
	}
}

func TestSame(t *testing.T) {
	base := topology().Wanted("netplugin", false)["n1"]
	for what, change := range map[string]func(*dockerd.Network){
		"options": func(n *dockerd.Network) { n.Options = map[string]string{"tenant": "default"} },
		"ipam":    func(n *dockerd.Network) { n.IPAMDriver = "default" },
		"subnets": func(n *dockerd.Network) { n.Subnets = n.Subnets[:1] },
		"gateway": func(n *dockerd.Network) {
			n.Subnets = []dockerd.Subnet{{Prefix: n.Subnets[0].Prefix, Gateway: netip.MustParseAddr("10.1.1.1")}, n.Subnets[1]}
		},
		"ipv6": func(n *dockerd.Network) { n.IPv6 = false },
	} {
		other := base
		change(&other)
		if Same(base, other) {
			t.Errorf("other %s are the same", what)
		}
	}
	shown := base
	shown.ID, shown.Subnets = "x", []dockerd.Subnet{base.Subnets[0], {Prefix: base.Subnets[1].Prefix, Gateway: netip.MustParseAddr("2001:db8::")}}
	if !Same(base, shown) {
		t.Error("a gateway that the Engine shows and nobody gave makes a difference")
	}
}
