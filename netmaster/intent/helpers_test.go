package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// quiet is a logger for tests that cause errors on purpose.
func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetLevel(logrus.PanicLevel)
	return l
}

// lead starts an engine over store as its new leader. stop ends the term and waits.
func lead(t tb, store objdb.Store) (e *Engine, l *intenttest.Leadership, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := intenttest.Lead(ctx, store)
	if err != nil {
		t.Fatalf("take the lock: %v", err)
	}
	e, err = New(ctx, Config{Log: quiet(), ClusterMode: "test", FwdMode: "routing", Infra: "default"}, store, l)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	e.writer.commits.pause = time.Microsecond
	return e, l, func() {
		cancel()
		<-e.Done()
	}
}

func (e *Engine) mustPut(t tb, coll Collection, key, body string) {
	t.Helper()
	if _, err := coll.Put(context.Background(), key, []byte(body)); err != nil {
		t.Fatalf("put %s %s: %v", coll.Name(), key, err)
	}
}

func (e *Engine) mustNetwork(t tb, name, subnet string) {
	t.Helper()
	e.mustPut(t, e.networks(), "default:"+name, fmt.Sprintf(`{"tenantName":"default","networkName":%q,"encap":"vxlan","subnet":%q}`, name, subnet))
}

func endpoint(net, group, container, addr string) masterapi.CreateEndpointRequest {
	return masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: net,
		ConfigEP: masterapi.ConfigEP{Container: container, Host: "host1", IPAddress: addr, ServiceName: group},
	}
}

// checkConsistent compares the model in memory with the store: the same records, indexes
// that agree with the claims, links that agree in both directions, exactly the right
// claims, and no remains of plans.
func (e *Engine) checkConsistent(t tb) {
	t.Helper()
	fresh := newModel(Config{Log: quiet()})
	l := loader{model: fresh, store: e.store, log: quiet(), written: &written{}}
	// In the writer, so that no transaction is under way.
	_, err := submit[struct{}](context.Background(), e.writer, true, func(x *tx) (reply, error) {
		if err := l.load(context.Background()); err != nil {
			return nil, err
		}
		done := func(int64) any { return struct{}{} }
		m := e.model
		compare(t, "tenants", fresh.tenants.table, m.tenants.table)
		compare(t, "networks", fresh.networks.table, m.networks.table)
		compare(t, "groups", fresh.groups.table, m.groups.table)
		compare(t, "globals", fresh.globals.table, m.globals.table)
		compare(t, "net profiles", fresh.profiles.table, m.profiles.table)
		compare(t, "policies", fresh.policies.table, m.policies.table)
		compare(t, "rules", fresh.rules.table, m.rules.table)
		compare(t, "app profiles", fresh.apps.table, m.apps.table)
		compare(t, "external contracts", fresh.contracts.table, m.contracts.table)
		compare(t, "BGP speakers", fresh.bgps.table, m.bgps.table)
		compare(t, "BGP records", fresh.bgps.records, m.bgps.records)
		compare(t, "ACI gateways", fresh.gateways.table, m.gateways.table)
		compare(t, "services", fresh.services.table, m.services.table)
		compare(t, "service records", fresh.services.records, m.services.records)
		compare(t, "provider lists", fresh.services.providers, m.services.providers)
		compare(t, "rule records", fresh.rules.records, m.rules.records)
		compare(t, "settings", fresh.globals.settings, m.globals.settings)
		compare(t, "network states", fresh.networks.records, m.networks.records)
		compare(t, "group states", fresh.groups.records, m.groups.records)
		compare(t, "endpoints", fresh.endpoints.table, m.endpoints.table)
		compare(t, "address claims", fresh.addrs.table, m.addrs.table)
		compare(t, "late releases", fresh.late.table, m.late.table)
		compare(t, "tag claims", fresh.tags.table, m.tags.table)
		if x.size() != 0 || len(x.undo) != 0 {
			t.Errorf("%d planned rows are left over", x.size())
		}
		for id, s := range m.spaces {
			claimed := map[string]bool{}
			for k, c := range m.addrs.where(m.addrs.ofNetwork, id) {
				if !isGroupOwner(c.Owner) {
					claimed[k.what] = true
				} else if !s.HasPool(c.Owner) {
					t.Errorf("network %s: %s has no pool", id, c.Owner)
				}
			}
			for addr := range claimed {
				if a, ok := parseAddr(addr); !ok || !s.Taken(a) {
					t.Errorf("network %s: %s is claimed but free", id, addr)
				}
			}
			if n := s.Len(); n != len(claimed) {
				t.Errorf("network %s: %d addresses are taken, %d claimed", id, n, len(claimed))
			}
		}
		if len(m.spaces) != len(m.networks.records.base) {
			t.Errorf("%d address spaces, %d networks", len(m.spaces), len(m.networks.records.base))
		}
		for name, p := range m.pools {
			if n, want := p.Len(), count(m.tags.where(m.tags.ofPool, name)); n != want {
				t.Errorf("pool %s: %d tags are taken, %d claimed", name, n, want)
			}
		}
		return done, nil
	})
	if err != nil {
		t.Fatalf("look at the model: %v", err)
	}
	if steps := slices.Concat(l.orphanAddresses(), l.orphanTags(), l.missingClaims(), l.wrongRules(), l.wrongServices()); len(steps) != 0 {
		t.Errorf("%d claims need repair", len(steps))
	}
	e.checkLinks(t)
}

func compare[K comparable, V any](t tb, what string, want, got *table[K, V]) {
	t.Helper()
	values := func(tab *table[K, V]) map[K]string {
		all := make(map[K]string, len(tab.base))
		for k, r := range tab.base {
			text, err := json.Marshal(r.v)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			all[k] = fmt.Sprintf("%d %s", r.rev, text)
		}
		return all
	}
	if diff := cmp.Diff(values(want), values(got)); diff != "" {
		t.Errorf("%s (-store +memory):\n%s", what, diff)
	}
}

// checkLinks checks that every link in the API has its counterpart.
func (e *Engine) checkLinks(t tb) {
	t.Helper()
	forward, backward := map[string]bool{}, map[string]bool{}
	for _, n := range e.networks().List(nil).([]*contivmodel.Network) {
		forward["network "+n.Key+" tenant "+n.Links.Tenant.Key] = true
		for g := range n.LinkSets.EndpointGroups {
			backward["group "+g+" network "+n.Key] = true
		}
	}
	for _, g := range e.groups().List(nil).([]*contivmodel.EndpointGroup) {
		forward["group "+g.Key+" network "+g.Links.Network.Key] = true
		forward["group "+g.Key+" tenant "+g.Links.Tenant.Key] = true
	}
	for _, tn := range e.tenants().List(nil).([]*contivmodel.Tenant) {
		for n := range tn.LinkSets.Networks {
			backward["network "+n+" tenant "+tn.Key] = true
		}
		for g := range tn.LinkSets.EndpointGroups {
			backward["group "+g+" tenant "+tn.Key] = true
		}
	}
	e.checkPolicyLinks(forward, backward)
	if diff := cmp.Diff(forward, backward); diff != "" {
		t.Errorf("links (-forward +backward):\n%s", diff)
	}
}

// checkPolicyLinks adds the links among groups, net profiles, policies and rules.
func (e *Engine) checkPolicyLinks(forward, backward map[string]bool) {
	for _, g := range e.groups().List(nil).([]*contivmodel.EndpointGroup) {
		for p := range g.LinkSets.Policies {
			forward["group "+g.Key+" policy "+p] = true
		}
		for c := range g.LinkSets.ExtContractsGrps {
			forward["group "+g.Key+" contracts "+c] = true
		}
		for r := range g.LinkSets.MatchRules {
			backward["rule "+r+" group "+g.Key] = true
		}
		if p := g.Links.NetProfile.Key; p != "" {
			forward["group "+g.Key+" profile "+p] = true
		}
	}
	for _, c := range e.contracts().List(nil).([]*contivmodel.ExtContractsGroup) {
		for g := range c.LinkSets.EndpointGroups {
			backward["group "+g+" contracts "+c.Key] = true
		}
	}
	for _, s := range e.services().List(nil).([]*contivmodel.ServiceLB) {
		forward["service "+s.Key+" tenant "+s.Links.Tenant.Key] = true
		forward["service "+s.Key+" network "+s.Links.Network.Key] = true
	}
	for _, n := range e.networks().List(nil).([]*contivmodel.Network) {
		for s := range n.LinkSets.Servicelbs {
			backward["service "+s+" network "+n.Key] = true
		}
	}
	for _, p := range e.appProfiles().List(nil).([]*contivmodel.AppProfile) {
		forward["app "+p.Key+" tenant "+p.Links.Tenant.Key] = true
	}
	for _, p := range e.netprofiles().List(nil).([]*contivmodel.Netprofile) {
		forward["profile "+p.Key+" tenant "+p.Links.Tenant.Key] = true
		for g := range p.LinkSets.EndpointGroups {
			backward["group "+g+" profile "+p.Key] = true
		}
	}
	for _, p := range e.policies().List(nil).([]*contivmodel.Policy) {
		forward["policy "+p.Key+" tenant "+p.Links.Tenant.Key] = true
		for g := range p.LinkSets.EndpointGroups {
			backward["group "+g+" policy "+p.Key] = true
		}
		for r := range p.LinkSets.Rules {
			backward["rule "+r+" policy "+p.Key] = true
		}
	}
	for _, r := range e.rules().List(nil).([]*contivmodel.Rule) {
		for p := range r.LinkSets.Policies {
			forward["rule "+r.Key+" policy "+p] = true
		}
		if g := r.Links.MatchEndpointGroup.Key; g != "" {
			forward["rule "+r.Key+" group "+g] = true
		}
	}
	for _, tn := range e.tenants().List(nil).([]*contivmodel.Tenant) {
		for s := range tn.LinkSets.Servicelbs {
			backward["service "+s+" tenant "+tn.Key] = true
		}
		for p := range tn.LinkSets.AppProfiles {
			backward["app "+p+" tenant "+tn.Key] = true
		}
		for p := range tn.LinkSets.NetProfiles {
			backward["profile "+p+" tenant "+tn.Key] = true
		}
		for p := range tn.LinkSets.Policies {
			backward["policy "+p+" tenant "+tn.Key] = true
		}
	}
}

// claims counts the claims of a network in the store, by owner.
func claims(t *testing.T, store objdb.Store, net string) map[string]string {
	t.Helper()
	kvs, _, err := store.List(t.Context(), state.IPAMRoot+net+"/")
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, kv := range kvs {
		var c state.AddressClaim
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			t.Fatal(err)
		}
		owners[kv.Key[len(state.IPAMRoot+net+"/"):]] = c.Owner
	}
	return owners
}

// The collections by which tests create objects.

func (e *Engine) tenants() *collection[contivmodel.Tenant, contivmodel.TenantOper] {
	return e.model.tenants.collection(e)
}

func (e *Engine) networks() *collection[contivmodel.Network, contivmodel.NetworkOper] {
	return e.model.networks.collection(e)
}

func (e *Engine) groups() *collection[contivmodel.EndpointGroup, contivmodel.EndpointGroupOper] {
	return e.model.groups.collection(e)
}

func (e *Engine) globals() *collection[contivmodel.Global, contivmodel.GlobalOper] {
	return e.model.globals.collection(e)
}

func (e *Engine) policies() *collection[contivmodel.Policy, contivmodel.PolicyOper] {
	return e.model.policies.collection(e)
}

func (e *Engine) rules() *collection[contivmodel.Rule, contivmodel.NoOper] {
	return e.model.rules.collection(e)
}

func (e *Engine) services() *collection[contivmodel.ServiceLB, contivmodel.ServiceLBOper] {
	return e.model.services.collection(e)
}

func (e *Engine) netprofiles() *collection[contivmodel.Netprofile, contivmodel.NoOper] {
	return e.model.profiles.collection(e)
}

func (e *Engine) appProfiles() *collection[contivmodel.AppProfile, contivmodel.NoOper] {
	return e.model.apps.collection(e)
}

func (e *Engine) contracts() *collection[contivmodel.ExtContractsGroup, contivmodel.NoOper] {
	return e.model.contracts.collection(e)
}
