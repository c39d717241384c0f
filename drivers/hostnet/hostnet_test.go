package hostnet

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/netx/netxtest"
)

var (
	first = Plan{
		Links: []Link{
			{Name: "h0", MAC: [6]byte{2, 2, 172, 19, 255, 254}, MTU: 1450, NoARP: true, Addrs: prefixes("172.19.255.254/16", "fd00:1::fffe/64")},
			{Name: "h1", MAC: [6]byte{2, 2, 1, 1, 1, 1}, Addrs: prefixes("132.1.1.2/24")},
		},
		Routes: []Route{
			{Dst: netip.MustParsePrefix("20.1.1.1/32"), Link: "h0", Src: netip.MustParseAddr("172.19.255.254")},
			{Dst: netip.MustParsePrefix("2001:db8::1/128"), Link: "h0", Src: netip.MustParseAddr("fd00:1::fffe")},
			{Dst: netip.MustParsePrefix("30.1.1.0/24"), Link: "h1"},
		},
		NAT: []NAT{
			{Out: "h1", To: netip.MustParseAddr("132.1.1.2")},
			{Out: "h0", To: netip.MustParseAddr("172.19.255.254"), Sender: ThisHost},
			{Out: "h0", To: netip.MustParseAddr("fd00:1::fffd"), Sender: Containers, Inside: []string{"h0", "h1"}},
			{Out: "h1", To: netip.MustParseAddr("172.19.255.253"), Sender: Others},
			{From: netip.MustParsePrefix("172.19.0.0/16"), Inside: []string{"h0", "h1"}},
			{From: netip.MustParsePrefix("fd00:1::/64"), Inside: []string{"h0", "h1"}},
		},
		Guarded: []string{"h0", "h1"}, Own: []netip.Addr{netip.MustParseAddr("172.19.255.254"), netip.MustParseAddr("fd00:1::fffe")},
		Deaf: []string{"port*"},
		Closed: Closed{
			Ports: []Ports{{6, 2379, 2380}, {6, 9090, 9090}, {17, 8301, 8301}},
			Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}, Tunnels: []uint16{4789},
		},
		World4: true, Outside: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	}
	second = Plan{
		Links: []Link{{Name: "h0", MAC: [6]byte{2, 2, 172, 20, 255, 254}, MTU: 1400, Addrs: prefixes("172.20.255.254/16")}},
		Routes: []Route{
			{Dst: netip.MustParsePrefix("20.1.1.1/32"), Link: "h0", Src: netip.MustParseAddr("172.20.255.254")},
		},
		NAT: []NAT{{From: netip.MustParsePrefix("172.20.0.0/16"), Inside: []string{"h0"}}},
	}
)

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// Whoever writes the store must not write rules: a name that is none of an interface is
// refused, and everything else is as planned.
func TestNamesThatAreNoInterfaces(t *testing.T) {
	inNamespace(t, func(k *Keeper, _ map[string]string) {
		for _, evil := range []string{
			"x\" accept; add rule inet contiv forward accept; #", "x\nadd table inet owned", "../../../kernel", "all", "h0\"", "", "{ }", strings.Repeat("y", 16),
		} {
			plan := first
			plan.Links = append(slices.Clone(plan.Links), Link{Name: evil})
			plan.Routes = append(slices.Clone(plan.Routes), Route{Dst: netip.MustParsePrefix("30.1.2.0/24"), Link: evil})
			plan.Guarded = append(slices.Clone(plan.Guarded), evil)
			plan.NAT = append([]NAT{{Out: evil, To: netip.MustParseAddr("132.1.1.9")}}, plan.NAT...)
			for i, n := range plan.NAT {
				if n.Out == "" {
					plan.NAT[i].Inside = append(slices.Clone(n.Inside), evil)
				}
			}
			if evil == "" { // which as a translation is one of the other kind
				plan.NAT = first.NAT
			}
			k.looked = k.looked.AddDate(-1, 0, 0)
			if err := k.apply(t.Context(), plan); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("interface name %q", evil)) {
				t.Errorf("%q: the error is %v", evil, err)
			}
			checkPlan(t, first)
		}
		if out, err := exec.Command("nft", "list", "tables").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "table inet contiv" {
			t.Errorf("tables: %v\n%s", err, out)
		}
	})
}

// From any plan to any other, with nothing of somebody else's touched, and with nothing
// left at the end.
func TestPlans(t *testing.T) {
	inNamespace(t, func(k *Keeper, noted map[string]string) {
		foreign := &netlink.Route{Dst: netipx.PrefixIPNet(netip.MustParsePrefix("198.51.100.0/24")), LinkIndex: index(t, "eth0"), Scope: unix.RT_SCOPE_LINK}
		if err := netlink.RouteAdd(foreign); err != nil {
			t.Fatal(err)
		}
		for _, plan := range []Plan{first, first, second, first, {Links: first.Links[:1]}} {
			k.looked = k.looked.AddDate(-1, 0, 0)
			if err := k.apply(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			checkPlan(t, plan)
			if routes, err := netlinksafe.RouteList(nil, netlink.FAMILY_V4); err != nil || !slices.ContainsFunc(routes, func(r netlink.Route) bool {
				return r.Dst.String() == "198.51.100.0/24"
			}) {
				t.Errorf("a route of somebody else is gone: %v, %v", routes, err)
			}
		}
		if diff := cmp.Diff(map[string]string{"net/ipv4/conf/eth0/forwarding": "0"}, noted); diff != "" {
			t.Errorf("noted settings (-want +got):\n%s", diff)
		}
		if got, _ := read("net/ipv4/conf/eth0/forwarding"); got != "1" {
			t.Errorf("forwarding of eth0 = %q, expected 1", got)
		}
		for path, old := range noted {
			if err := Restore(path, old); err != nil {
				t.Error(err)
			}
		}
		if got, _ := read("net/ipv4/conf/eth0/forwarding"); got != "0" {
			t.Errorf("forwarding of eth0 = %q, expected 0 again", got)
		}
		if found, err := RemoveRules(t.Context(), false); err != nil || found {
			t.Errorf("rules without a plan for them: %t, %v", found, err)
		}
	})
}

// A destination that the host has another route to is left to that.
func TestForeignRoute(t *testing.T) {
	inNamespace(t, func(k *Keeper, _ map[string]string) {
		foreign := &netlink.Route{Dst: netipx.PrefixIPNet(netip.MustParsePrefix("30.1.1.0/24")), LinkIndex: index(t, "eth0"), Scope: unix.RT_SCOPE_LINK}
		if err := netlink.RouteAdd(foreign); err != nil {
			t.Fatal(err)
		}
		err := k.apply(t.Context(), first)
		if err == nil || !strings.Contains(err.Error(), "30.1.1.0/24") || !strings.Contains(err.Error(), "another route") {
			t.Errorf("error %v, expected one that names the destination", err)
		}
		routes, err := netlinksafe.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if r.Dst != nil && r.Dst.String() == "30.1.1.0/24" && r.LinkIndex != foreign.LinkIndex {
				t.Errorf("the route is ours now: %v", r)
			}
		}
	})
}

// Rules that somebody flushes come back; those of others stay.
func TestRules(t *testing.T) {
	inNamespace(t, func(*Keeper, map[string]string) {
		for range 2 {
			if err := applyRules(t.Context(), first.rules()); err != nil {
				t.Fatal(err)
			}
		}
		found, err := RemoveRules(t.Context(), true)
		if err != nil || !found {
			t.Errorf("dry run: %t, %v, expected a table", found, err)
		}
		if found, err = RemoveRules(t.Context(), false); err != nil || !found {
			t.Errorf("removal: %t, %v, expected a table", found, err)
		}
		if found, err = RemoveRules(t.Context(), false); err != nil || found {
			t.Errorf("second removal: %t, %v, expected none", found, err)
		}
	})
}

// Rules are read again only when nftables' rule set has changed: without a change nft is not
// even started.
func TestUnchangedRulesAreNotRead(t *testing.T) {
	inNamespace(t, func(k *Keeper, _ map[string]string) {
		want := first.rules()
		later := func() error {
			k.looked = k.looked.Add(-2 * lookAgain)
			return k.applyRules(t.Context(), want)
		}
		for range 2 { // the first one changes the rule set itself
			if err := later(); err != nil {
				t.Fatal(err)
			}
			k.looked = time.Now()
		}
		path := os.Getenv("PATH")
		t.Setenv("PATH", "")
		if err := later(); err != nil {
			t.Errorf("nothing has changed: %v", err)
		}
		t.Setenv("PATH", path)
		if _, err := RemoveRules(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", "")
		if err := later(); err == nil {
			t.Error("the rules were flushed, and nobody looked")
		}
		t.Setenv("PATH", path)
		k.looked = time.Now()
		if err := later(); err != nil {
			t.Fatal(err)
		}
		if err := checkRules(t.Context(), want); err != nil {
			t.Error(err)
		}
	})
}

func TestRuleTexts(t *testing.T) {
	var got []string
	for _, r := range first.rules() {
		got = append(got, r.chain+" "+r.text)
	}
	want := []string{
		`postrouting oifname "h1" ip saddr != 132.1.1.2 snat ip to 132.1.1.2`,
		`postrouting oifname "h0" meta iif 0 ip saddr != 172.19.255.254 snat ip to 172.19.255.254`,
		`postrouting oifname "h0" iifname { "h0", "h1" } ip6 saddr != fd00:1::fffd snat ip6 to fd00:1::fffd`,
		`postrouting oifname "h1" meta iif != 0 ip saddr != 172.19.255.253 snat ip to 172.19.255.253`,
		`postrouting oifname != { "h0", "h1" } ip saddr 172.19.0.0/16 masquerade`,
		`postrouting oifname != { "h0", "h1" } ip6 saddr fd00:1::/64 masquerade`,
		`forward oifname "h0" ip saddr 172.19.255.254 drop`, `forward oifname "h0" ip6 saddr fd00:1::fffe drop`,
		`forward oifname "h0" ct status dnat accept`, `forward oifname "h0" ct state new drop`,
		`forward oifname "h1" ip saddr 172.19.255.254 drop`, `forward oifname "h1" ip6 saddr fd00:1::fffe drop`,
		`forward oifname "h1" ct status dnat accept`, `forward oifname "h1" ct state new drop`,
		`forward iifname { "h0", "h1" } ct direction reply accept`,
		`forward iifname { "h0", "h1" } ip daddr { 192.0.2.1, 192.0.2.2 } tcp dport { 2379-2380, 9090 } drop`,
		`forward iifname { "h0", "h1" } ip6 daddr { 2001:db8::2 } tcp dport { 2379-2380, 9090 } drop`,
		`forward iifname { "h0", "h1" } udp dport { 4789 } drop`,
		`forward iifname { "h0", "h1" } ip daddr { 192.0.2.1, 192.0.2.2 } udp dport { 8301 } drop`,
		`forward iifname { "h0", "h1" } ip6 daddr { 2001:db8::2 } udp dport { 8301 } drop`,
		`input iifname { "h0", "h1" } ct direction reply accept`,
		`input iifname { "h0", "h1" } tcp dport { 2379-2380, 9090 } drop`,
		`input iifname { "h0", "h1" } udp dport { 4789 } drop`,
		`input iifname { "h0", "h1" } udp dport { 8301 } drop`,
		`prerouting iifname "port*" drop`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// inNamespace runs f where there are the links eth0 (the world), h0 and h1.
func inNamespace(t *testing.T, f func(k *Keeper, noted map[string]string)) {
	t.Helper()
	err := ns.WithNetNSPath(netxtest.Namespace(t), func(ns.NetNS) error {
		for _, name := range []string{"eth0", "h0", "h1"} {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = name
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "-peer"}); err != nil {
				return err
			}
		}
		eth0, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := applyAddrs(eth0, prefixes("192.0.2.1/24")); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(eth0); err != nil {
			return err
		}
		if err := set("net/ipv4/ip_forward", "0"); err != nil {
			return err
		}
		noted := map[string]string{}
		f(New(Config{Note: func(path, old string) error { noted[path] = old; return nil }}), noted)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func index(t *testing.T, name string) int {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return link.Attrs().Index
}

// checkPlan compares what there is with the plan.
func checkPlan(t *testing.T, plan Plan) {
	t.Helper()
	for _, want := range plan.Links {
		link, err := netlinksafe.LinkByName(want.Name)
		if err != nil {
			t.Fatal(err)
		}
		a := link.Attrs()
		if got := fmt.Sprintf("%x", []byte(a.HardwareAddr)); got != fmt.Sprintf("%x", want.MAC) || want.MTU != 0 && a.MTU != want.MTU ||
			want.NoARP != (a.RawFlags&unix.IFF_NOARP != 0) || a.RawFlags&unix.IFF_UP == 0 {
			t.Errorf("link %+v, expected %+v up", a, want)
		}
		addrs, err := netlinksafe.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		have := map[netip.Prefix]bool{}
		for _, x := range addrs {
			if p, ok := asPrefix(x.IPNet); ok && !p.Addr().IsLinkLocalUnicast() {
				have[p] = true
			}
		}
		wanted := map[netip.Prefix]bool{}
		for _, p := range want.Addrs {
			wanted[p] = true
		}
		if !maps.Equal(have, wanted) {
			t.Errorf("addresses of %s: %v, expected %v", want.Name, have, want.Addrs)
		}
	}
	routes, err := ourRoutes()
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) != len(plan.Routes) {
		t.Errorf("routes %v, expected %v", routes, plan.Routes)
	}
	if err := checkRules(t.Context(), plan.rules()); err != nil {
		t.Error(err)
	}
}

func checkRules(ctx context.Context, want []rule) error {
	found, err := RemoveRules(ctx, true)
	if err == nil && found != (len(want) > 0) {
		return fmt.Errorf("a table of rules: %t, expected %t", found, len(want) > 0)
	}
	return err
}
