package ipam

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func space(t testing.TB, subnet, subnet6 string) *Space {
	t.Helper()
	s, err := contivmodel.ParseSubnet(subnet)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "net1.default", Subnet: s}
	if subnet6 != "" {
		cfg.Subnet6 = netip.MustParsePrefix(subnet6).Masked()
	}
	return New(cfg)
}

func rng(t testing.TB, s string) contivmodel.Range {
	t.Helper()
	r, ok := contivmodel.ParseRange(s)
	if !ok {
		t.Fatalf("range %q", s)
	}
	return r
}

func TestNext4(t *testing.T) {
	for _, tc := range []struct {
		subnet, taken, want string
	}{
		{"10.1.1.0/24", "", "10.1.1.1"},
		{"10.1.1.50/24", "", "10.1.1.1"}, // host bits do not limit the range
		{"10.1.1.0/24", "10.1.1.1", "10.1.1.2"},
		{"20.1.1.10-20.1.1.45/24", "", "20.1.1.10"},
		{"20.1.1.0-20.1.1.9/24", "", "20.1.1.1"},
		{"10.1.1.0/30", "10.1.1.1", "10.1.1.2"},
		{"10.1.1.0/31", "", ""}, // network and broadcast address only
		{"10.0.0.0/8", "", "10.0.0.1"},
		{"255.255.255.252/30", "255.255.255.253", "255.255.255.254"},
	} {
		t.Run(tc.subnet, func(t *testing.T) {
			s := space(t, tc.subnet, "")
			if tc.taken != "" {
				s.Take(netip.MustParseAddr(tc.taken))
			}
			got, err := s.Next4("")
			if tc.want == "" {
				if !errs.Is(err, errs.Exhausted) {
					t.Fatalf("Next4 = %v, %v, want exhaustion", got, err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Fatalf("Next4 = %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestNext6(t *testing.T) {
	for _, tc := range []struct{ prefix, last, taken, want string }{
		{"2016:430::/64", "", "", "2016:430::1"},
		{"2016:430::/64", "2016:430::253", "", "2016:430::254"},
		{"babe:face::80/121", "babe:face::c4", "", "babe:face::c5"},
		{"2001:db8::/64", "2001:db8::4:ffff:ffff", "", "2001:db8::5:0:0"},
		{"2001:db8::/124", "2001:db8::f", "", "2001:db8::1"},                                                  // goes round
		{"2001:db8::/124", "2001:db8::e", "2001:db8::f", "2001:db8::1"},                                       // and over claims
		{"2001:db8::/120", "2001:db8::ff", "2001:db8::1", "2001:db8::2"},                                      // length a multiple of 8
		{"2001:db8::/127", "", "2001:db8::1", ""},                                                             // one usable address
		{"ffff:ffff:ffff:ffff::/64", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", "ffff:ffff:ffff:ffff::1"}, // end of everything
	} {
		t.Run(tc.prefix+" after "+tc.last, func(t *testing.T) {
			s := space(t, "10.1.1.0/24", tc.prefix)
			if tc.last != "" {
				s.SetLast6(netip.MustParseAddr(tc.last))
			}
			if tc.taken != "" {
				s.Take(netip.MustParseAddr(tc.taken))
			}
			got, err := s.Next6()
			if tc.want == "" {
				if !errs.Is(err, errs.Exhausted) {
					t.Fatalf("Next6 = %v, %v, want exhaustion", got, err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Fatalf("Next6 = %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestPools(t *testing.T) {
	s := space(t, "10.1.1.0/28", "")
	s.Take(netip.MustParseAddr("10.1.1.9"))
	for _, tc := range []struct{ pool, want string }{
		{"10.1.1.5-10.1.1.3", "ipPool 10.1.1.5-10.1.1.3 runs backwards"},
		{"10.1.1.8-10.1.1.10", "ip address 10.1.1.9 is not available: it is in use in network net1.default"},
		{"10.1.1.0-10.1.1.2", "ip address 10.1.1.0 is not available: requested address is out of range: " +
			"10.1.1.0 is no host address of 10.1.1.0/28 (10.1.1.0-10.1.1.15) in network net1.default"},
		{"10.1.1.3-10.1.1.4", ""},
	} {
		got := ""
		if err := s.CheckPool(rng(t, tc.pool)); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("CheckPool(%s) = %q, want %q", tc.pool, got, tc.want)
		}
	}
	s.AddPool(Pool{Owner: "group/web:default", Range: rng(t, "10.1.1.1-10.1.1.2")})
	if err := s.CheckPool(rng(t, "10.1.1.2-10.1.1.3")); err == nil {
		t.Error("an overlapping pool passes")
	}
	if a, err := s.Next4(""); err != nil || a.String() != "10.1.1.3" {
		t.Errorf("Next4 beside the pool = %v, %v", a, err)
	}
	for _, want := range []string{"10.1.1.1", "10.1.1.2"} {
		a, err := s.Next4("group/web:default")
		if err != nil || a.String() != want {
			t.Errorf("Next4 in the pool = %v, %v, want %s", a, err, want)
		}
		s.Take(a)
	}
	if _, err := s.Next4("group/web:default"); !errs.Is(err, errs.Exhausted) {
		t.Errorf("Next4 in a full pool: %v", err)
	}
	s.RemovePool("group/web:default")
	s.Free(netip.MustParseAddr("10.1.1.1"))
	if a, err := s.Next4(""); err != nil || a.String() != "10.1.1.1" {
		t.Errorf("Next4 after the pool = %v, %v", a, err)
	}
}

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		subnet               string
		taken                []string
		allocated, available string
	}{
		{"60.1.1.0/24", []string{"60.1.1.254", "60.1.1.2", "60.1.1.1"}, "60.1.1.1-60.1.1.2, 60.1.1.254", "60.1.1.3-60.1.1.253"},
		{"10.1.1.1/24", []string{"10.1.1.254"}, "10.1.1.254", "10.1.1.1-10.1.1.253"},
		{"20.1.1.10-20.1.1.12/24", []string{"20.1.1.254"}, "", "20.1.1.10-20.1.1.12"},
		{"20.1.1.10-20.1.1.12/24", []string{"20.1.1.5-20.1.1.10", "20.1.1.12-20.1.1.20"}, "20.1.1.10, 20.1.1.12", "20.1.1.11"},
		{"10.1.1.0/30", []string{"10.1.1.0", "10.1.1.1-10.1.1.2", "10.1.1.2"}, "10.1.1.1-10.1.1.2", ""},
		{"10.1.1.0/31", []string{"10.1.1.1"}, "", ""},
		{"10.0.0.0/8", nil, "", "10.0.0.1-10.255.255.254"},
	} {
		s, err := contivmodel.ParseSubnet(tc.subnet)
		if err != nil {
			t.Fatal(err)
		}
		var taken []contivmodel.Range
		for _, r := range tc.taken {
			taken = append(taken, rng(t, r))
		}
		allocated, available := Report(s, taken)
		if diff := cmp.Diff([]string{tc.allocated, tc.available}, []string{allocated, available}); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tc.subnet, tc.taken, diff)
		}
	}
}

// TestNeverTwoOwners claims and frees at random, through the network and through two pools,
// and checks that nobody gets an address that is claimed, outside the range, or in somebody
// else's pool, and that in the end all are free.
func TestNeverTwoOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnet := rapid.SampledFrom([]string{"10.1.1.0/29", "10.1.1.0/27", "10.1.1.4-10.1.1.20/27", "10.0.0.0/8"}).Draw(t, "subnet")
		parsed, err := contivmodel.ParseSubnet(subnet)
		if err != nil {
			t.Fatal(err)
		}
		s := New(Config{Name: "n", Subnet: parsed, Subnet6: netip.MustParsePrefix("2001:db8::/125")})
		pools := map[string]contivmodel.Range{}
		out := map[netip.Addr]bool{}
		if r, ok := contivmodel.ParseRange("10.1.1.5-10.1.1.6"); ok && rapid.Bool().Draw(t, "pool") && s.CheckPool(r) == nil {
			s.AddPool(Pool{Owner: "a", Range: r})
			pools["a"] = r
		}
		owners := []string{"", "a", "6"}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(out) > 0 && rapid.IntRange(0, 2).Draw(t, "op") == 0 {
				for a := range out {
					if !s.Free(a) || s.Free(a) {
						t.Fatalf("%s is not freed exactly once", a)
					}
					delete(out, a)
					break
				}
				continue
			}
			owner := rapid.SampledFrom(owners).Draw(t, "owner")
			var a netip.Addr
			if owner == "6" {
				if a, err = s.Next6(); err == nil {
					s.SetLast6(a)
				}
			} else {
				a, err = s.Next4(owner)
			}
			if err != nil {
				if !errs.Is(err, errs.Exhausted) {
					t.Fatal(err)
				}
				continue
			}
			if out[a] || s.Taken(a) || s.Check(a) != nil || !s.Take(a) || s.Take(a) {
				t.Fatalf("%s handed to %q: out %v, %v", a, owner, out[a], s.Check(a))
			}
			out[a] = true
			if r, ok := pools["a"]; ok && owner != "6" && r.Contains(a) != (owner == "a") {
				t.Fatalf("%s handed to %q beside pool %v", a, owner, r)
			}
		}
		for a := range out {
			if !s.Free(a) {
				t.Fatalf("%s was not held", a)
			}
		}
		if s.used.Len() != 0 || len(s.used6) != 0 {
			t.Fatalf("%d + %d addresses are left", s.used.Len(), len(s.used6))
		}
	})
}
