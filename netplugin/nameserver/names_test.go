package nameserver

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return log
}

func set(t testing.TB, key string, v any) objdb.Event {
	t.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return objdb.Event{KV: objdb.KV{Key: key, Value: value}}
}

func gone(key string) objdb.Event { return objdb.Event{KV: objdb.KV{Key: key}, Deleted: true} }

func endpointKey(id string) string { return state.EndpointRoot + id }

// endpoint is a record; id is NET.TENANT-ID.
func endpoint(t testing.TB, id, name, grp, v4, v6 string) objdb.Event {
	net, ep, _ := strings.Cut(id, "-")
	_, tenant, _ := strings.Cut(net, ".")
	rec := state.Endpoint{ID: id, NetID: net, EndpointID: ep, EPCommonName: name, IPAddress: v4, IPv6Address: v6, ContainerID: ep}
	if grp != "" {
		rec.EndpointGroupKey = state.GroupID(grp, tenant)
	}
	return set(t, endpointKey(id), rec)
}

func lb(t testing.TB, name, tenant, v4, v6 string) objdb.Event {
	return set(t, state.ServiceLBRoot+state.ServiceID(name, tenant), state.ServiceLB{ServiceName: name, Tenant: tenant, IPAddress: v4, IPv6Address: v6})
}

// sample is two tenants that use the same names and addresses.
func sample(t testing.TB) *Names {
	n := NewNames(quiet())
	n.Apply(objdb.Batch{Snapshot: true, Events: []objdb.Event{
		endpoint(t, "net.blue-0123456789abcdef"+strings.Repeat("0", 48), "/web1", "web", "10.1.1.1", "2001:db8::1"),
		endpoint(t, "net.blue-b", "web2", "web", "10.1.1.2", ""),
		endpoint(t, "net.blue-c", "six", "", "", "2001:db8::3"),
		endpoint(t, "net.blue-d", "Upper.Dotted", "", "10.1.1.4", ""),
		endpoint(t, "net.blue-e", "svc", "svc", "10.1.1.5", ""),
		endpoint(t, "net.blue-h", "", "web.dotted", "10.1.1.5", ""),
		lb(t, "svc", "blue", "10.1.1.100", ""),
		lb(t, "svc6", "blue", "10.1.1.101", "2001:db8::101"),
		endpoint(t, "net.red-f", "web1", "web", "10.1.1.2", ""),
		endpoint(t, "net.red-g", "secret", "", "10.1.1.9", ""),
		set(t, state.NetworkRoot+"net.blue", state.Network{ID: "net.blue"}),
		{KV: objdb.KV{Key: endpointKey("net.blue-bad"), Value: []byte("{")}},
	}})
	return n
}

func sampleZone(t testing.TB) *zone {
	return &zone{names: sample(t), domain: "contiv.local", ttl: 5}
}

func TestResolve(t *testing.T) {
	z := sampleZone(t)
	web := []string{"10.1.1.1", "10.1.1.2"}
	for _, c := range []struct {
		tenant, name string
		qtype        uint16
		want         []string // data of the records
		verdict      verdict
	}{
		{"blue", "web1.", dns.TypeA, web[:1], found},
		{"blue", "WEB1.", dns.TypeA, web[:1], found},
		{"blue", "web1.", dns.TypeAAAA, []string{"2001:db8::1"}, found},
		{"blue", "web1.", dns.TypeANY, web[:1], found},
		{"blue", "web1.", dns.TypeMX, nil, noData},
		{"blue", "web.", dns.TypeA, web, found},
		{"blue", "web.", dns.TypeAAAA, []string{"2001:db8::1"}, found},
		{"blue", "web2.", dns.TypeAAAA, nil, noData},
		{"blue", "six.", dns.TypeA, nil, noData},
		{"blue", "six.", dns.TypeANY, []string{"2001:db8::3"}, found},
		{"blue", "upper.dotted.", dns.TypeA, nil, foreign},
		{"blue", "upper.dotted.contiv.local.", dns.TypeA, nil, noDomain},
		{"blue", "upper.dotted.blue.contiv.local.", dns.TypeA, []string{"10.1.1.4"}, found},
		{"blue", "web.dotted.", dns.TypeA, []string{"10.1.1.5"}, found}, // a group's
		{"blue", "svc.", dns.TypeA, []string{"10.1.1.100"}, found},      // a service before a group
		{"blue", "svc6.", dns.TypeAAAA, []string{"2001:db8::101"}, found},
		{"blue", "0123456789ab.", dns.TypeA, web[:1], found},
		{"blue", "0123456789.", dns.TypeA, nil, foreign},
		{"blue", "web1.contiv.local.", dns.TypeA, web[:1], found},
		{"blue", "web1.blue.contiv.local.", dns.TypeA, web[:1], found},
		{"blue", "web1.blue.Contiv.Local.", dns.TypeA, web[:1], found},
		{"blue", "web1.red.contiv.local.", dns.TypeA, nil, noDomain},
		{"blue", "nobody.contiv.local.", dns.TypeA, nil, noDomain},
		{"blue", "contiv.local.", dns.TypeA, nil, noData},
		{"blue", "blue.contiv.local.", dns.TypeA, nil, noData},
		{"blue", "secret.", dns.TypeA, nil, foreign},
		{"blue", "secret.contiv.local.", dns.TypeA, nil, noDomain},
		{"blue", "example.com.", dns.TypeA, nil, foreign},
		{"blue", ".", dns.TypeNS, nil, foreign},
		{"blue", "1.1.1.10.in-addr.arpa.", dns.TypePTR, []string{"web1.blue.contiv.local."}, found},
		{"blue", "100.1.1.10.in-addr.arpa.", dns.TypePTR, []string{"svc.blue.contiv.local."}, found},
		{"blue", "1.1.1.10.in-addr.arpa.", dns.TypeA, nil, noData},
		{"blue", "9.1.1.10.in-addr.arpa.", dns.TypePTR, nil, foreign},
		{"blue", strings.TrimSuffix(must(dns.ReverseAddr("2001:db8::3")), ".") + ".", dns.TypePTR, []string{"six.blue.contiv.local."}, found},
		{"red", "2.1.1.10.in-addr.arpa.", dns.TypePTR, []string{"web1.red.contiv.local."}, found},
		{"red", "web1.", dns.TypeA, web[1:], found},
		{"red", "web2.", dns.TypeA, nil, foreign},
		{"red", "svc.", dns.TypeA, nil, foreign},
		{"green", "web1.", dns.TypeA, nil, foreign},
	} {
		t.Run(fmt.Sprint(c.tenant, " ", c.name, dns.TypeToString[c.qtype]), func(t *testing.T) {
			rrs, v := z.resolve(c.tenant, dns.Question{Name: c.name, Qtype: c.qtype, Qclass: dns.ClassINET})
			if v != c.verdict {
				t.Errorf("verdict %d, want %d", v, c.verdict)
			}
			var got []string
			for _, rr := range rrs {
				h := rr.Header()
				if h.Name != c.name || h.Ttl != 5 || h.Class != dns.ClassINET {
					t.Errorf("header %v", h)
				}
				got = append(got, strings.TrimPrefix(rr.String(), h.String()))
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("records (-want +got):\n%s", d)
			}
		})
	}
	if _, v := z.resolve("blue", dns.Question{Name: "web1.", Qtype: dns.TypeA, Qclass: dns.ClassCHAOS}); v != foreign {
		t.Errorf("a question of another class has verdict %d", v)
	}
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func TestReverse(t *testing.T) {
	for _, a := range []string{"10.1.2.3", "0.0.0.0", "2001:db8::1", "fe80::abcd:ef01:2345:6789", "::"} {
		if got, ok := reverse(strings.TrimSuffix(must(dns.ReverseAddr(a)), ".")); !ok || got != netip.MustParseAddr(a) {
			t.Errorf("%s is read as %s, %t", a, got, ok)
		}
	}
	for _, name := range []string{"1.10.in-addr.arpa", "x.1.1.10.in-addr.arpa", "1.2.3.4.5.in-addr.arpa", "1.ip6.arpa", strings.Repeat("0", 63) + ".ip6.arpa", "in-addr.arpa", ""} {
		if a, ok := reverse(name); ok {
			t.Errorf("%q is read as %s", name, a)
		}
	}
}

// What a record said before must be forgotten when it says something else.
func TestChangedRecords(t *testing.T) {
	z := sampleZone(t)
	ask := func(name string) []string {
		rrs, _ := z.resolve("blue", dns.Question{Name: name + ".", Qtype: dns.TypeA, Qclass: dns.ClassINET})
		out := []string{}
		for _, rr := range rrs {
			out = append(out, rr.(*dns.A).A.String())
		}
		slices.Sort(out)
		return out
	}
	expect := func(name string, want ...string) {
		t.Helper()
		if want == nil {
			want = []string{}
		}
		if d := cmp.Diff(want, ask(name)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	z.names.Apply(objdb.Batch{Events: []objdb.Event{endpoint(t, "net.blue-b", "db", "store", "10.1.1.22", "")}})
	expect("web2")
	expect("web", "10.1.1.1")
	expect("db", "10.1.1.22")
	expect("store", "10.1.1.22")
	if names := z.names.hostNames("blue", netip.MustParseAddr("10.1.1.2")); names != nil {
		t.Errorf("the old address is still that of %v", names)
	}
	z.names.Apply(objdb.Batch{Events: []objdb.Event{gone(state.ServiceLBRoot + "svc:blue")}})
	expect("svc", "10.1.1.5") // the group of that name
	z.names.Apply(objdb.Batch{Events: []objdb.Event{gone(endpointKey("net.blue-e")), gone(endpointKey("net.blue-e")), gone(endpointKey("net.blue-h"))}})
	expect("svc")
	z.names.Apply(objdb.Batch{Snapshot: true, Events: []objdb.Event{endpoint(t, "net.blue-z", "last", "", "10.1.1.7", "")}})
	expect("web")
	expect("last", "10.1.1.7")
	z.names.Apply(objdb.Batch{Snapshot: true})
	if left := len(z.names.tenants) + z.names.endpoints.Len() + z.names.services.Len(); left != 0 {
		t.Errorf("something is left: %+v", z.names)
	}
}

// Names in turn, ten at a time, each as often as the others.
func TestTurns(t *testing.T) {
	n := NewNames(quiet())
	const members = 25
	for i := range members {
		n.Apply(objdb.Batch{Events: []objdb.Event{endpoint(t, fmt.Sprintf("net.blue-%d", i), "", "web", fmt.Sprintf("10.1.1.%d", i+1), "")}})
	}
	seen := map[netip.Addr]int{}
	for range members {
		out, _ := n.addresses("blue", "web", false, maxRecords)
		if len(out) != maxRecords {
			t.Fatalf("%d addresses, want %d", len(out), maxRecords)
		}
		seen[out[0]]++
	}
	if len(seen) != members {
		t.Errorf("%d of %d addresses were first once", len(seen), members)
	}
}

// Whatever happened before, the index is that of the records there are.
func TestIndexFollowsRecords(t *testing.T) {
	names := []string{"", "a", "b", "C"}
	rapid.Check(t, func(rt *rapid.T) {
		n, records := NewNames(quiet()), map[string]objdb.Event{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			id := fmt.Sprintf("net.%s-%d", rapid.SampledFrom([]string{"t", "u"}).Draw(rt, "tenant"), rapid.IntRange(0, 14).Draw(rt, "id"))
			ev := endpoint(t, id, rapid.SampledFrom(names).Draw(rt, "name"), rapid.SampledFrom(names).Draw(rt, "group"),
				fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 20).Draw(rt, "v4")), rapid.SampledFrom([]string{"", "2001:db8::1", "2001:db8::2"}).Draw(rt, "v6"))
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0, 1, 2:
				ev = gone(endpointKey(id))
				delete(records, ev.KV.Key)
			default:
				records[ev.KV.Key] = ev
			}
			n.Apply(objdb.Batch{Events: []objdb.Event{ev}})
		}
		fresh := NewNames(quiet())
		var all []objdb.Event
		for _, ev := range records {
			all = append(all, ev)
		}
		fresh.Apply(objdb.Batch{Snapshot: true, Events: all})
		if d := cmp.Diff(fresh.inspect(), n.inspect()); d != "" {
			rt.Fatalf("records (-want +got):\n%s", d)
		}
		for _, tenant := range []string{"t", "u"} {
			for _, name := range []string{"a", "b", "c", "0", "14"} {
				for _, six := range []bool{false, true} {
					want, known1 := fresh.addresses(tenant, name, six, 100)
					got, known2 := n.addresses(tenant, name, six, 100)
					slices.SortFunc(want, netip.Addr.Compare)
					slices.SortFunc(got, netip.Addr.Compare)
					if !slices.Equal(want, got) || known1 != known2 {
						rt.Fatalf("%s of %s: %v %t, want %v %t", name, tenant, got, known2, want, known1)
					}
				}
			}
		}
	})
}

// The cost of a query does not depend on how many endpoints there are.
func BenchmarkResolve(b *testing.B) {
	for _, size := range []int{10, 1000, 100000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := NewNames(quiet())
			for i := range size {
				n.Apply(objdb.Batch{Events: []objdb.Event{endpoint(b, fmt.Sprintf("net.blue-%d", i), fmt.Sprint("c", i), "web", netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String(), "")}})
			}
			z := &zone{names: n, domain: "contiv.local", ttl: 5}
			b.ReportAllocs()
			for b.Loop() {
				if rrs, _ := z.resolve("blue", dns.Question{Name: "web.", Qtype: dns.TypeA, Qclass: dns.ClassINET}); len(rrs) != maxRecords {
					b.Fatal(rrs)
				}
			}
		})
	}
}

// TestNamesOfTenantsWithDots: the names of a tenant `blue.corp` are not those of the tenant
// `corp`, whichever record comes first, and no container's name with dots makes it look as if
// they were, or takes the place of a name of the world.
func TestNamesOfTenantsWithDots(t *testing.T) {
	network := func(name, tenant string) objdb.Event {
		id := state.NetworkID(name, tenant)
		return set(t, state.NetworkRoot+id, state.Network{ID: id, NetworkName: name, Tenant: tenant})
	}
	ep := func(net, tenant, id, name, v4 string) objdb.Event {
		netID := state.NetworkID(net, tenant)
		return set(t, endpointKey(state.EndpointID(netID, id)), state.Endpoint{
			ID: state.EndpointID(netID, id), NetID: netID, EndpointID: id, EPCommonName: name, IPAddress: v4, ContainerID: id,
		})
	}
	events := []objdb.Event{
		network("net", "corp"), network("net", "blue.corp"), network("my.net", "green"),
		ep("net", "blue.corp", "a", "web", "10.1.0.1"),
		ep("net", "corp", "b", "web.blue", "10.2.0.1"), // reads as web of blue.corp
		ep("net", "corp", "c", "db", "10.2.0.2"),
		ep("net", "corp", "d", "github.com", "10.2.0.3"),
		ep("net", "corp", "e", "web.green.contiv.local", "10.2.0.4"),
		ep("net", "corp", "f", "web.green", "10.2.0.5"),
		ep("my.net", "green", "g", "web", "10.3.0.1"),
	}
	type question struct{ tenant, name string }
	wants := map[question]string{
		{"blue.corp", "web"}:                                 "10.1.0.1",
		{"blue.corp", "web.blue.corp.contiv.local"}:          "10.1.0.1",
		{"corp", "web"}:                                      "foreign",
		{"corp", "web.contiv.local"}:                         "no domain",
		{"corp", "web.blue.corp.contiv.local"}:               "no domain",
		{"corp", "blue.corp.contiv.local"}:                   "no domain",
		{"corp", "db.corp.contiv.local"}:                     "10.2.0.2",
		{"corp", "corp.contiv.local"}:                        "no data",
		{"corp", "github.com"}:                               "foreign",
		{"corp", "github.com.corp.contiv.local"}:             "10.2.0.3",
		{"corp", "web.green.contiv.local"}:                   "no domain",
		{"corp", "web.green"}:                                "foreign",
		{"corp", "web.green.corp.contiv.local"}:              "10.2.0.5",
		{"corp", "web.green.contiv.local.corp.contiv.local"}: "10.2.0.4",
		{"green", "web"}:                                     "10.3.0.1",
		{"green", "web.green.contiv.local"}:                  "10.3.0.1",
		{"net.green", "web"}:                                 "foreign",
		{"blue.corp", "db"}:                                  "foreign",
		{"blue.corp", "db.corp.contiv.local"}:                "no domain",
	}
	check := func(n *Names) {
		t.Helper()
		z := &zone{names: n, domain: "contiv.local", ttl: 5}
		for q, want := range wants {
			rrs, v := z.resolve(q.tenant, dns.Question{Name: q.name + ".", Qtype: dns.TypeA, Qclass: dns.ClassINET})
			got := map[verdict]string{foreign: "foreign", noData: "no data", noDomain: "no domain"}[v]
			for _, rr := range rrs {
				got += rr.(*dns.A).A.String()
			}
			if got != want {
				t.Errorf("%s asks for %s: %s, want %s", q.tenant, q.name, got, want)
			}
		}
	}
	at := NewNames(quiet())
	at.Apply(objdb.Batch{Snapshot: true, Events: events})
	check(at)
	slices.Reverse(events) // endpoints before their networks, batch by batch
	n := NewNames(quiet())
	for _, ev := range events {
		n.Apply(objdb.Batch{Events: []objdb.Event{ev}})
	}
	check(n)
	if names := n.hostNames("corp", netip.MustParseAddr("10.1.0.1")); names != nil {
		t.Errorf("an address of tenant blue.corp is %q in tenant corp", names)
	}
	for _, ev := range events {
		n.Apply(objdb.Batch{Events: []objdb.Event{gone(ev.KV.Key)}})
	}
	at.Apply(objdb.Batch{Snapshot: true})
	for _, n := range []*Names{n, at} {
		if left := len(n.tenants) + n.endpoints.Len() + n.services.Len() + n.networks.Len() + len(n.ambiguous) + len(n.known); left != 0 {
			t.Errorf("something is left: %+v", n)
		}
	}
}
