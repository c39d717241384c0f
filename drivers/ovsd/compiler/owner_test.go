package compiler

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPrivateAddresses(t *testing.T) {
	got := hostAccessOf(netip.MustParsePrefix("172.19.0.0/16"))
	if got.MAC.String() != "02:02:ac:13:ff:fe" || got.Addr4.String() != "172.19.255.254" || got.Addr6.String() != "fd63:6f6e:7469:ac13::fffe" ||
		got.Subnet6.String() != "fd63:6f6e:7469:ac13::/64" {
		t.Errorf("host access %+v", got)
	}
	four, six := privateAddrs(netip.MustParsePrefix("10.7.0.0/16"), 0x1234)
	if four.String() != "10.7.18.52" || six.String() != "fd63:6f6e:7469:a07::1234" {
		t.Errorf("addresses of port 0x1234: %s, %s", four, six)
	}
	for _, none := range []netip.Prefix{{}, netip.MustParsePrefix("172.19.0.0/24"), netip.MustParsePrefix("fd00::/16")} {
		if got := hostAccessOf(none); got.Addr4.IsValid() {
			t.Errorf("private subnet %s gives %+v, expected nothing", none, got)
		}
	}
}

func TestAddressOwners(t *testing.T) {
	a := netip.MustParseAddr("20.1.1.1")
	claim := func(tenant string) claimant { return claimant{tenant: tenant, addrs: [2]netip.Addr{a}} }
	d := newOwnerTable()
	for _, step := range []struct {
		id, winner string
		claim      claimant
		changed    []string
	}{
		{"n.green-1", "n.green-1", claim("green"), []string{"n.green-1"}},
		{"n.red-1", "n.green-1", claim("red"), nil},
		{"n.default-1", "n.default-1", claim("default"), []string{"n.default-1", "n.green-1"}},
		{"n.blue-1", "n.default-1", claim("blue"), nil},
		{"n.default-1", "n.blue-1", claimant{}, []string{"n.blue-1", "n.default-1"}},
		{"n.blue-1", "n.green-1", claimant{}, []string{"n.blue-1", "n.green-1"}},
		{"n.green-1", "n.red-1", claimant{}, []string{"n.green-1", "n.red-1"}},
		{"n.red-1", "", claimant{}, []string{"n.red-1"}},
	} {
		changed := d.put(step.id, step.claim)
		slices.Sort(changed)
		if diff := cmp.Diff(step.changed, changed); diff != "" {
			t.Errorf("changed by %s (-want +got):\n%s", step.id, diff)
		}
		if got := d.winner(a); got != step.winner {
			t.Errorf("after %s %q owns it, expected %q", step.id, got, step.winner)
		}
	}
	if len(d.claims)+len(d.by) != 0 {
		t.Errorf("left over: %+v", d)
	}
}

// The order of events does not matter, and endpoints that lose an address are reported.
func TestOwnersInAnyOrder(t *testing.T) {
	tenants := []string{"default", "blue", "red"}
	rapid.Check(t, func(t *rapid.T) {
		d, told := newOwnerTable(), map[string][2]bool{}
		now := map[string]claimant{}
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		address := rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("20.1.1.1"), netip.MustParseAddr("20.1.1.2")})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			x := id.Draw(t, "id")
			c := claimant{}
			if rapid.Bool().Draw(t, "there") {
				c = claimant{rapid.SampledFrom(tenants).Draw(t, "tenant"), [2]netip.Addr{address.Draw(t, "four"), {}}}
			}
			for _, y := range append(d.put(x, c), x) {
				told[y] = [2]bool{d.is(y, netip.MustParseAddr("20.1.1.1")), d.is(y, netip.MustParseAddr("20.1.1.2"))}
			}
			now[x] = c
			again := newOwnerTable()
			for y, c := range now {
				again.put(y, c)
			}
			if diff := cmp.Diff(again.winners(), d.winners(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Fatalf("in another order (-other +this):\n%s", diff)
			}
			for y, knows := range told {
				if is := [2]bool{d.is(y, netip.MustParseAddr("20.1.1.1")), d.is(y, netip.MustParseAddr("20.1.1.2"))}; is != knows {
					t.Fatalf("%s was told %v and is %v", y, knows, is)
				}
			}
		}
	})
}
