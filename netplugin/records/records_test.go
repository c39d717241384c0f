package records

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

func put(t testing.TB, key string, record any) objdb.Event {
	t.Helper()
	value, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return objdb.Event{KV: objdb.KV{Key: key, Value: value}}
}

func deleted(key string) objdb.Event { return objdb.Event{KV: objdb.KV{Key: key}, Deleted: true} }

func networkOf(t testing.TB, name, tenant, encap string) objdb.Event {
	id := state.NetworkID(name, tenant)
	return put(t, state.NetworkRoot+id, state.Network{ID: id, NetworkName: name, Tenant: tenant, PktTagType: encap})
}

func endpointOf(t testing.TB, network, name, host string, labels ...string) objdb.Event {
	rec := state.Endpoint{ID: state.EndpointID(network, name), NetID: network, EndpointID: name, HomingHost: host, EPCommonName: strings.Join(labels, " ")}
	return put(t, state.EndpointRoot+rec.ID, rec)
}

// view is what parts of an agent know after batches.
type view map[string]string

func (v view) take(t testing.TB, r *Records, b objdb.Batch) {
	t.Helper()
	out, err := r.Take(b)
	if err != nil {
		t.Fatal(err)
	}
	if out.Snapshot != b.Snapshot || out.Revision != b.Revision {
		t.Fatalf("%+v became %+v", b, out)
	}
	if out.Snapshot {
		clear(v)
	}
	once := map[string]bool{}
	for _, ev := range out.Events {
		if once[ev.KV.Key] {
			t.Fatalf("%s comes twice", ev.KV.Key)
		}
		once[ev.KV.Key] = true
		if ev.Deleted {
			delete(v, ev.KV.Key)
		} else {
			v[ev.KV.Key] = string(ev.KV.Value)
		}
	}
}

func (v view) keys() []string {
	var out []string
	for key := range v {
		out = append(out, strings.TrimPrefix(key, state.StateRoot))
	}
	slices.Sort(out)
	return out
}

// What belongs to a tenant comes with its first endpoint on the host, and goes with the last one.
func TestTenantComesAndGoes(t *testing.T) {
	r, v := New("me", false), view{}
	all := []objdb.Event{
		networkOf(t, "net", "blue", state.EncapVXLAN), endpointOf(t, "net.blue", "c1", "other"),
		put(t, state.PolicyRuleRoot+"blue:r", state.PolicyRule{RuleID: "blue:r"}),
		put(t, state.ServiceLBRoot+"web:blue", state.ServiceLB{ID: "web:blue", Tenant: "blue"}),
		put(t, state.ProviderRoot+"web:blue", state.ProviderList{ID: "web:blue"}),
		put(t, state.HostRoot+"other", state.Host{ID: "other"}),
		put(t, state.IPAMRoot+"net.blue/10.1.1.1", state.AddressClaim{Owner: "gateway"}),
		networkOf(t, "net", "red", state.EncapVXLAN), endpointOf(t, "net.red", "c1", "other"),
	}
	elsewhere := []string{"hosts/other", "nets/net.blue", "nets/net.red"}
	here := []string{"eps/net.blue-c1", "eps/net.blue-own", "hosts/other", "nets/net.blue", "nets/net.red", "policyRule/blue:r", "provider/web:blue", "serviceLB/web:blue"}
	own := endpointOf(t, "net.blue", "own", "me")
	for _, step := range []struct {
		what  string
		batch objdb.Batch
		want  []string
	}{
		{"elsewhere", objdb.Batch{Snapshot: true, Revision: 1, Events: all}, elsewhere},
		{"its first endpoint here", objdb.Batch{Revision: 2, Events: []objdb.Event{own}}, here},
		{"the last one goes", objdb.Batch{Revision: 3, Events: []objdb.Event{deleted(own.KV.Key)}}, elsewhere},
		{"it moves here", objdb.Batch{Revision: 4, Events: []objdb.Event{endpointOf(t, "net.blue", "own", "other"), own}}, here},
		{"it moves away", objdb.Batch{Revision: 5, Events: []objdb.Event{endpointOf(t, "net.blue", "own", "other")}}, elsewhere},
		{"it was here for less than a batch", objdb.Batch{Revision: 7, Events: []objdb.Event{own, deleted(own.KV.Key)}}, elsewhere},
		{"a snapshot with it", objdb.Batch{Snapshot: true, Revision: 8, Events: append(slices.Clone(all), own)}, here},
		{"the network turns to VLAN", objdb.Batch{Revision: 9, Events: []objdb.Event{networkOf(t, "net", "red", state.EncapVLAN)}}, slices.Sorted(slices.Values(append([]string{"eps/net.red-c1"}, here...)))},
		{"a snapshot without it", objdb.Batch{Snapshot: true, Revision: 10, Events: all}, elsewhere},
	} {
		v.take(t, r, step.batch)
		if diff := cmp.Diff(step.want, v.keys()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// A host that needs all tenants gets everything that is not netmaster's, and keeps nothing here.
func TestAllTenants(t *testing.T) {
	r, v := New("me", true), view{}
	v.take(t, r, objdb.Batch{Snapshot: true, Revision: 1, Events: []objdb.Event{
		networkOf(t, "net", "red", state.EncapVXLAN), endpointOf(t, "net.red", "c1", "other"), put(t, state.TagRoot+"vlan/1", state.TagClaim{Owner: "network/net.red"}),
	}})
	if diff := cmp.Diff([]string{"eps/net.red-c1", "nets/net.red"}, v.keys()); diff != "" || r.Size() != 0 {
		t.Errorf("%d bytes are kept; (-want +got):\n%s", r.Size(), diff)
	}
}

// wanted is what a host is to know of a store.
func wanted(t *testing.T, store view) view {
	tenantOf, here := map[string]string{}, map[string]bool{}
	var eps []state.Endpoint
	for key, value := range store {
		var n state.Network
		var e state.Endpoint
		switch {
		case strings.HasPrefix(key, state.NetworkRoot):
			if err := json.Unmarshal([]byte(value), &n); err != nil {
				t.Fatal(err)
			}
			tenantOf[n.ID] = n.Tenant
			here[n.Tenant] = here[n.Tenant] || n.PktTagType == state.EncapVLAN
		case strings.HasPrefix(key, state.EndpointRoot):
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				t.Fatal(err)
			}
			eps = append(eps, e)
		}
	}
	for _, e := range eps {
		if tenant, known := tenantOf[e.NetID]; known && e.HomingHost == "me" {
			here[tenant] = true
		}
	}
	out := maps.Clone(store)
	for _, e := range eps {
		tenant, known := tenantOf[e.NetID]
		if e.HomingHost != "me" && (!known || !here[tenant]) {
			delete(out, state.EndpointRoot+e.ID)
		}
	}
	for key := range store {
		rule, isRule := strings.CutPrefix(key, state.PolicyRuleRoot)
		service, isService := strings.CutPrefix(key, state.ServiceLBRoot)
		if isRule && !here[strings.Split(rule, ":")[0]] || isService && !here[strings.Split(service, ":")[1]] {
			delete(out, key)
		}
	}
	return out
}

// Whatever happens in the store, a host knows of it exactly what it is to know.
func TestAnyChanges(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r, v, store := New("me", false), view{}, view{}
		tenants, names := []string{"t", "t-a", "b.t"}, []string{"n", "n-t"}
		random := func() objdb.Event {
			tenant, name, i := tenants[rnd.IntN(3)], names[rnd.IntN(2)], rnd.IntN(8)
			var ev objdb.Event
			switch rnd.IntN(6) {
			case 0:
				ev = networkOf(t, name, tenant, []string{state.EncapVXLAN, state.EncapVXLAN, state.EncapVXLAN, state.EncapVLAN}[rnd.IntN(4)])
			case 1:
				ev = put(t, state.PolicyRuleRoot+fmt.Sprint(tenant, ":", i), state.PolicyRule{Priority: rnd.IntN(9)})
			case 2:
				ev = put(t, state.ServiceLBRoot+fmt.Sprint("s", i, ":", tenant), state.ServiceLB{IPAddress: fmt.Sprint(rnd.IntN(9))})
			default:
				ev = endpointOf(t, state.NetworkID(name, tenant), fmt.Sprint("t-", i), []string{"me", "x", "y", "z"}[rnd.IntN(4)], fmt.Sprint(rnd.IntN(9)))
			}
			if rnd.IntN(3) == 0 {
				return deleted(ev.KV.Key)
			}
			return ev
		}
		for step := range 60 {
			b := objdb.Batch{Snapshot: step == 0 || rnd.IntN(20) == 0, Revision: int64(step)}
			for range rnd.IntN(6) {
				ev := random()
				if delete(store, ev.KV.Key); !ev.Deleted {
					store[ev.KV.Key] = string(ev.KV.Value)
				}
				b.Events = append(b.Events, ev)
			}
			if b.Snapshot {
				b.Events = nil
				for _, key := range slices.Sorted(maps.Keys(store)) {
					b.Events = append(b.Events, objdb.Event{KV: objdb.KV{Key: key, Value: []byte(store[key])}})
				}
			}
			v.take(t, r, b)
			if diff := cmp.Diff(wanted(t, store), v); diff != "" {
				t.Fatalf("seed %d, step %d, after %+v (-want +got):\n%s", seed, step, b, diff)
			}
		}
		all := objdb.Batch{Revision: 100}
		for key := range store {
			all.Events = append(all.Events, deleted(key))
		}
		v.take(t, r, all)
		v.take(t, r, objdb.Batch{Revision: 101, Events: []objdb.Event{networkOf(t, "n", "t", state.EncapVXLAN)}})
		if n := r.Size(); n != 0 || len(r.endpoints)+len(r.others) > 0 {
			t.Fatalf("seed %d: %d bytes in %d packs are kept of nothing", seed, n, len(r.endpoints)+len(r.others))
		}
	}
}

// What cannot be read is left to those who complain about it.
func TestUnreadable(t *testing.T) {
	r, v := New("me", false), view{}
	v.take(t, r, objdb.Batch{Snapshot: true, Revision: 1, Events: []objdb.Event{
		{KV: objdb.KV{Key: state.EndpointRoot + "net.red-c1", Value: []byte("{")}},
		{KV: objdb.KV{Key: state.NetworkRoot + "net.red", Value: []byte("{")}},
		{KV: objdb.KV{Key: state.PolicyRuleRoot + ":x"}},
		{KV: objdb.KV{Key: state.ServiceLBRoot + "web"}},
		endpointOf(t, "other.red", "c1", "x"),
		put(t, state.EndpointRoot+"net.red-c2", state.Endpoint{NetID: "other.red"}),
	}})
	if diff := cmp.Diff([]string{"eps/net.red-c1", "eps/net.red-c2", "nets/net.red", "policyRule/:x", "serviceLB/web"}, v.keys()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Records of other tenants take little, at the start and after every one of them has changed.
func TestPacked(t *testing.T) {
	r := New("me", false)
	raw, b := 0, objdb.Batch{Snapshot: true, Revision: 1, Events: []objdb.Event{networkOf(t, "net", "red", state.EncapVXLAN)}}
	endpoint := func(i int, host string) objdb.Event {
		return put(t, state.EndpointRoot+fmt.Sprint("net.red-c", i), state.Endpoint{
			ID: fmt.Sprint("net.red-c", i), NetID: "net.red", EndpointID: fmt.Sprint("c", i), IPAddress: fmt.Sprint("10.1.1.", i), MacAddress: fmt.Sprintf("02:02:0a:01:01:%02x", i), HomingHost: host,
		})
	}
	for i := range 100 {
		b.Events = append(b.Events, endpoint(i, "x"))
		raw += len(b.Events[i].KV.Value)
	}
	v := view{}
	v.take(t, r, b)
	if n := r.Size(); n == 0 || n > raw/8 {
		t.Errorf("%d bytes of %d", n, raw)
	}
	for i := range 100 {
		v.take(t, r, objdb.Batch{Revision: int64(2 + i), Events: []objdb.Event{endpoint(i, "y")}})
		if n := r.Size(); n > raw/3 {
			t.Fatalf("%d bytes of %d after %d changes", n, raw, i)
		}
	}
	v.take(t, r, objdb.Batch{Revision: 200, Events: []objdb.Event{endpointOf(t, "net.red", "own", "me")}})
	if n := len(v); n != 102 || !strings.Contains(v[state.EndpointRoot+"net.red-c7"], `"homingHost":"y"`) {
		t.Errorf("%d records: %v", n, v)
	}
}

func TestTruncated(t *testing.T) {
	var k packer
	for _, kvs := range [][]objdb.KV{{{Key: "/a", Value: []byte("1"), CreateRevision: 1, ModRevision: -2}, {Key: "/b"}}, nil} {
		packed, err := k.pack(kvs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpack(packed)
		if diff := cmp.Diff(fmt.Sprint(kvs), fmt.Sprint(got)); diff != "" || err != nil {
			t.Error(diff, err)
		}
		for n := range packed {
			if _, err := unpack(packed[:n]); err == nil && n > 0 {
				t.Errorf("%d of %d bytes are no error", n, len(packed))
			}
		}
	}
}

// BenchmarkTenantComesAndGoes is the first endpoint of a tenant on the host and its end, with 100 endpoints
// elsewhere; and as ratio to that, the change of one of those while the tenant is not here.
func BenchmarkTenantComesAndGoes(b *testing.B) {
	r := New("me", false)
	all := objdb.Batch{Snapshot: true, Revision: 1, Events: []objdb.Event{networkOf(b, "net", "red", state.EncapVXLAN)}}
	for i := range 100 {
		all.Events = append(all.Events, endpointOf(b, "net.red", fmt.Sprint("c", i), "x"))
	}
	take := func(batch objdb.Batch) {
		if _, err := r.Take(batch); err != nil {
			b.Fatal(err)
		}
	}
	take(all)
	own := endpointOf(b, "net.red", "own", "me")
	for b.Loop() {
		take(objdb.Batch{Events: []objdb.Event{own}})
		take(objdb.Batch{Events: []objdb.Event{deleted(own.KV.Key)}})
	}
	comes, n := b.Elapsed()/time.Duration(b.N), 1000
	began := time.Now()
	for i := range n {
		take(objdb.Batch{Events: []objdb.Event{all.Events[1+i%100]}})
	}
	b.ReportMetric(float64(time.Since(began))/float64(n)/float64(comes), "change/comes")
}
