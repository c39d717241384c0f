package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/netmaster/hostapi/hostapitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netspec"
)

func put(t *testing.T, store objdb.Store, key string, v any) {
	t.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, store, objdb.Put(key, value))
}

func commit(t *testing.T, store objdb.Store, ops ...objdb.Op) {
	t.Helper()
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: ops}); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, store objdb.Store) (*Agent, *fakedriver.Driver, <-chan error) {
	t.Helper()
	return startWith(t, store, func(*Config) {})
}

func startWith(t *testing.T, store objdb.Store, change func(*Config)) (*Agent, *fakedriver.Driver, <-chan error) {
	t.Helper()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	d := fakedriver.New()
	cfg := Config{
		HostLabel: "host1", VTEP: netip.MustParseAddr("192.168.60.10"), CtrlIP: netip.MustParseAddr("192.168.2.10"),
		FwdMode: "routing", Store: store, Master: hostapitest.Master{Store: store}, Driver: d, Log: log,
		AllTenants: true, // whether this host has something of them or not; see TestOwnTenants
	}
	change(&cfg)
	a := New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(cancel)
	return a, d, done
}

var global = state.Global{FwdMode: "routing", ARPMode: "proxy", PvtSubnet: "172.19.0.0/16"}

func network(name string, vni int) state.Network {
	return state.Network{
		ID: name + ".default", Tenant: "default", NetworkName: name, Settings: netspec.Settings{NwType: "data"}, PktTagType: "vxlan", PktTag: vni, ExtPktTag: vni,
		SubnetIP: fmt.Sprintf("10.%d.0.0", vni), SubnetLen: 16, Gateway: fmt.Sprintf("10.%d.255.254", vni),
	}
}

func endpoint(n state.Network, i int, host string) state.Endpoint {
	id := fmt.Sprintf("c%d", i)
	return state.Endpoint{
		ID: n.ID + "-" + id, NetID: n.ID, EndpointID: id, HomingHost: host,
		IPAddress: fmt.Sprintf("10.%d.0.%d", n.ExtPktTag, i), MacAddress: fmt.Sprintf("02:02:0a:%02x:00:%02x", n.ExtPktTag, i),
	}
}

func TestWaitsForTheGlobalSettings(t *testing.T) {
	store := memory.New()
	a, d, _ := start(t, store)
	n := network("net1", 1)
	put(t, store, state.NetworkRoot+n.ID, n)
	eventually.True(t, "the network is known", func() bool { _, ok := a.KnownNetwork(n.ID); return ok })
	if d.State().Synced[drivers.SourceStore] {
		t.Error("declared complete before the settings were known: the switch would be swept")
	}
	if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "global settings") {
		t.Errorf("ready: %v, expected that the settings are missing", err)
	}
	put(t, store, state.GlobalKey, global)
	eventually.True(t, "complete", func() bool { return d.State().Synced[drivers.SourceStore] && a.Ready() == nil })
}

func TestRefusesAnotherForwardingMode(t *testing.T) {
	store := memory.New()
	g := global
	g.FwdMode = "bridge"
	put(t, store, state.GlobalKey, g)
	_, _, done := start(t, store)
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), `local forward mode "routing" doesn't match global settings "bridge"`) {
			t.Errorf("error %v", err)
		}
	case <-time.After(eventually.Scaled(time.Minute)):
		t.Fatal("the agent goes on")
	}
}

func TestPublishesItsHost(t *testing.T) {
	store := memory.New()
	start(t, store)
	key := state.HostRoot + "host1"
	published := func() bool {
		kv, err := store.Get(t.Context(), key)
		return err == nil && strings.Contains(string(kv.Value), "192.168.60.10")
	}
	eventually.True(t, "the host is published", published)
	commit(t, store, objdb.Delete(key))
	eventually.True(t, "it is published again", published)
}

// An endpoint's declaration joins records that may arrive in any order.
func TestAnyOrderOfEventsDeclaresTheSame(t *testing.T) {
	n1, n2 := network("net1", 1), network("net2", 2)
	records := map[string]any{
		state.GlobalKey: global, state.NetworkRoot + n1.ID: n1, state.NetworkRoot + n2.ID: n2,
		state.HostRoot + "host2": state.Host{ID: "host2", VtepIP: "192.168.60.11"},
		state.HostRoot + "host3": state.Host{ID: "host3", VtepIP: "192.168.60.12"},
	}
	for i := 1; i < 10; i++ {
		for _, n := range []state.Network{n1, n2} {
			ep := endpoint(n, i, fmt.Sprintf("host%d", i%3+1))
			records[state.EndpointRoot+ep.ID] = ep
		}
	}
	for _, r := range []state.PolicyRule{
		{RuleID: "default:web:default:p:default:p:1:inRx", Priority: 1, DstEndpointGroup: 1, IPProtocol: 6, DstPort: 80, Action: "allow"},
		{RuleID: "default:web:default:p:default:p:2:inRx", Priority: 2, DstEndpointGroup: 1, SrcIPAddr: "10.0.0.0/8", Action: "deny"},
	} {
		records[state.PolicyRuleRoot+r.RuleID] = r
	}
	var keys []string
	for k := range records {
		keys = append(keys, k)
	}
	var want fakedriver.State
	for round := range 20 {
		rng := rand.New(rand.NewPCG(uint64(round), 7))
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		store := memory.New()
		for _, k := range keys[:round%len(keys)] { // part of it is there at the start
			put(t, store, k, records[k])
		}
		a, d, _ := start(t, store)
		for _, k := range keys[round%len(keys):] {
			put(t, store, k, records[k])
			if rng.IntN(3) == 0 { // comes, goes, and comes again
				commit(t, store, objdb.Delete(k))
				put(t, store, k, records[k])
			}
		}
		// The watch is ordered: when the last record has arrived, all have.
		put(t, store, state.HostRoot+"last", state.Host{ID: "last", VtepIP: "192.168.60.99"})
		eventually.True(t, "everything is declared", func() bool {
			a.mu.Lock()
			_, last := a.hosts["last"]
			a.mu.Unlock()
			st := d.State()
			return last && st.Synced[drivers.SourceStore] && len(st.Endpoints) == 18 && len(st.Rules) == 2 && len(st.Networks) == 2
		})
		if round == 0 {
			want = d.State()
			continue
		}
		if diff := cmp.Diff(want, d.State(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, drivers.Network{}, drivers.Rule{})); diff != "" {
			t.Fatalf("round %d (-first +now):\n%s", round, diff)
		}
	}
}

func TestAddressThatMovesToAnotherEndpoint(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	put(t, store, state.GlobalKey, global)
	put(t, store, state.NetworkRoot+n.ID, n)
	put(t, store, state.HostRoot+"host2", state.Host{ID: "host2", VtepIP: "192.168.60.11"})
	old, heir := endpoint(n, 1, "host1"), endpoint(n, 2, "host2")
	heir.IPAddress, heir.MacAddress = old.IPAddress, old.MacAddress
	put(t, store, state.EndpointRoot+old.ID, old)
	_, d, _ := start(t, store)
	eventually.True(t, "declared", func() bool { return len(d.State().Endpoints) == 1 })
	value, _ := json.Marshal(heir)
	commit(t, store, objdb.Delete(state.EndpointRoot+old.ID), objdb.Put(state.EndpointRoot+heir.ID, value))
	eventually.True(t, "moved", func() bool {
		eps := d.State().Endpoints
		_, isNew := eps[heir.ID]
		return len(eps) == 1 && isNew
	})
}

// An endpoint is where its record says, which the store orders: no clock of a host counts.
// What a host does not have yet when it learns of the endpoint is made up for.
func TestEndpointThatMovesToAnotherHost(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	put(t, store, state.GlobalKey, global)
	put(t, store, state.NetworkRoot+n.ID, n)
	ep := endpoint(n, 1, "host2")
	put(t, store, state.EndpointRoot+ep.ID, ep)
	_, d, _ := start(t, store)
	at := func(local bool, vtep string) func() bool {
		return func() bool {
			e, ok := d.State().Endpoints[ep.ID]
			return ok && e.Local == local && (vtep == "" && !e.VTEP.IsValid() || vtep != "" && e.VTEP == netip.MustParseAddr(vtep))
		}
	}
	eventually.True(t, "on a host that is not known yet", at(false, ""))
	put(t, store, state.HostRoot+"host2", state.Host{ID: "host2", VtepIP: "192.168.60.11"})
	eventually.True(t, "on host2", at(false, "192.168.60.11"))
	ep.HomingHost = "host1"
	put(t, store, state.EndpointRoot+ep.ID, ep)
	eventually.True(t, "here", at(true, ""))
	ep.HomingHost = "host3"
	put(t, store, state.EndpointRoot+ep.ID, ep)
	put(t, store, state.HostRoot+"host3", state.Host{ID: "host3", VtepIP: "192.168.60.12"})
	eventually.True(t, "on host3", at(false, "192.168.60.12"))
	put(t, store, state.HostRoot+"host3", state.Host{ID: "host3", VtepIP: "192.168.60.13"})
	eventually.True(t, "on host3 at its new address", at(false, "192.168.60.13"))
	commit(t, store, objdb.Delete(state.HostRoot+"host3"))
	eventually.True(t, "on a host that is gone", at(false, ""))
}

func TestOperationalRecordsFollowAttachments(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	put(t, store, state.GlobalKey, global)
	put(t, store, state.NetworkRoot+n.ID, n)
	stale := state.OperEndpoint{ID: "net1.default-gone", HomingHost: "host1"}
	foreign := state.OperEndpoint{ID: "net1.default-other", HomingHost: "host2"}
	put(t, store, state.OperEndpointRt+stale.ID, stale)
	put(t, store, state.OperEndpointRt+foreign.ID, foreign)
	ep := endpoint(n, 1, "host1")
	put(t, store, state.EndpointRoot+ep.ID, ep)
	a, d, _ := start(t, store)
	if _, err := d.Attach(t.Context(), drivers.Attachment{EndpointID: ep.ID, ContainerID: "c1"}, 2, 1); err != nil {
		t.Fatal(err)
	}
	a.PortsChanged()
	ids := func() string {
		kvs, _, err := store.List(t.Context(), state.OperEndpointRt)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, kv := range kvs {
			out = append(out, strings.TrimPrefix(kv.Key, state.OperEndpointRt))
		}
		return strings.Join(out, " ")
	}
	eventually.True(t, "written, and the stale one gone", func() bool { a.PortsChanged(); return ids() == "net1.default-c1 net1.default-other" })
	commit(t, store, objdb.Delete(state.EndpointRoot+ep.ID))
	eventually.True(t, "removed with the endpoint", func() bool { return ids() == "net1.default-other" })
}

// A network is given out only once other hosts know the tunnel address of this one.
func TestNetworkWaitsForTheHostsRecord(t *testing.T) {
	vtep := netip.MustParseAddr("192.168.60.10")
	a := New(Config{HostLabel: "h1", VTEP: vtep, Store: memory.New(), Driver: fakedriver.New()})
	n := network("net", 1)
	apply := func(recs ...objdb.KV) {
		var events []objdb.Event
		for _, kv := range recs {
			events = append(events, objdb.Event{KV: kv})
		}
		a.apply(objdb.Batch{Snapshot: !a.loaded, Events: events})
	}
	record := func(key string, v any) objdb.KV {
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return objdb.KV{Key: key, Value: value}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	apply(record(state.NetworkRoot+n.ID, n))
	for _, rec := range []state.Host{{ID: "h2", VtepIP: "192.168.60.10"}, {ID: "h1", VtepIP: "192.168.60.9"}} {
		apply(record(state.HostRoot+rec.ID, rec))
		if _, err := a.Network(ended, n.ID); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), vtep.String()) {
			t.Errorf("with the record %+v: error %v, expected that the host's record is waited for", rec, err)
		}
	}
	apply(record(state.HostRoot+"h1", state.Host{ID: "h1", VtepIP: vtep.String()}))
	if _, err := a.Network(ended, n.ID); err != nil {
		t.Error(err)
	}
}
