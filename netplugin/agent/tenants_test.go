package agent

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// What a tenant has in TestOwnTenants.
const endpointsOfTenant, rulesOfTenant, servicesOfTenant = 5, 3, 1

// tenantRecords are a network, endpoints on other hosts, rules and a service of a tenant.
func tenantRecords(t *testing.T, store objdb.Store, tenant string) {
	t.Helper()
	n := network("net", 1)
	n.ID, n.Tenant = state.NetworkID("net", tenant), tenant
	put(t, store, state.NetworkRoot+n.ID, n)
	for i := range endpointsOfTenant {
		e := endpoint(n, i, fmt.Sprint("other", i))
		put(t, store, state.EndpointRoot+e.ID, e)
	}
	for i := range rulesOfTenant {
		id := fmt.Sprintf("%s:g:%s:p:%s:p:%d:inRx", tenant, tenant, tenant, i)
		put(t, store, state.PolicyRuleRoot+id, state.PolicyRule{RuleID: id, Priority: 1, DstEndpointGroup: 1, Action: "deny"})
	}
	id := state.ServiceID("web", tenant)
	put(t, store, state.ServiceLBRoot+id, state.ServiceLB{ID: id, ServiceName: "web", Tenant: tenant, IPAddress: "10.1.0.9", Ports: []string{"80:8080:TCP"}})
	put(t, store, state.ProviderRoot+id, state.ProviderList{ID: id, ServiceName: id, Providers: []string{"10.1.0.1"}})
}

// ownRecord is an endpoint of this host.
func ownRecord(tenant string) state.Endpoint {
	n := network("net", 1)
	n.ID = state.NetworkID("net", tenant)
	return endpoint(n, 100, "host1")
}

// keyKeeper is a part beside the driver that keeps the keys of what it is told.
type keyKeeper struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (r *keyKeeper) take(b objdb.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Snapshot {
		r.keys = map[string]bool{}
	}
	for _, ev := range b.Events {
		if delete(r.keys, ev.KV.Key); !ev.Deleted {
			r.keys[ev.KV.Key] = true
		}
	}
}

func (r *keyKeeper) count(prefix string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.keys {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// What an agent and its parts keep unpacked, and declare, grows with the tenants of its host, not with those
// of the cluster.
func TestOwnTenants(t *testing.T) {
	const all = 20
	store := memory.New()
	put(t, store, state.GlobalKey, global)
	for i := range all {
		tenantRecords(t, store, fmt.Sprint("t", i))
	}
	own := func(i int) state.Endpoint { return ownRecord(fmt.Sprint("t", i)) }
	put(t, store, state.EndpointRoot+own(0).ID, own(0))
	var parts keyKeeper
	a, d, _ := startWith(t, store, func(c *Config) { c.AllTenants, c.OnBatch = false, parts.take })
	expect := func(own int) {
		t.Helper()
		want := fmt.Sprint(all, own*(endpointsOfTenant+1), own*rulesOfTenant, own*servicesOfTenant)
		eventually.Succeeds(t, fmt.Sprint("records of ", own, " tenants"), func() error {
			st, s := a.Status(), d.State()
			for who, got := range map[string]string{
				"the agent":       fmt.Sprint(st.Networks, st.Endpoints, st.Rules, st.Services),
				"the driver":      fmt.Sprint(len(s.Networks), len(s.Endpoints), len(s.Rules), len(s.Services)),
				"the other parts": fmt.Sprint(parts.count(state.NetworkRoot), parts.count(state.EndpointRoot), parts.count(state.PolicyRuleRoot), parts.count(state.ServiceLBRoot)),
			} {
				if got != want {
					return fmt.Errorf("networks, endpoints, rules and services of %s: %s, expected %s", who, got, want)
				}
			}
			return nil
		})
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.services.lists) + len(a.services.providing); n != own*servicesOfTenant {
			t.Errorf("lists of providers of %d services", n)
		}
		if len(a.byNetwork) != own || len(a.byHost) > own*endpointsOfTenant+1 {
			t.Errorf("endpoints of %d networks and %d hosts", len(a.byNetwork), len(a.byHost))
		}
	}
	expect(1)
	for i := 1; i < 4; i++ { // one after the other
		put(t, store, state.EndpointRoot+own(i).ID, own(i))
		expect(1 + i)
	}
	store.Resync()
	expect(4)
	for i := range 4 {
		commit(t, store, objdb.Delete(state.EndpointRoot+own(i).ID))
		expect(3 - i)
	}
}

// order notes which objects of a tenant are declared, and deleted, in which order.
type order struct {
	Driver
	mu    sync.Mutex
	noted []string
}

func (o *order) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noted = append(o.noted, what)
}

func (o *order) Apply(obj drivers.Object) {
	switch obj := obj.(type) {
	case drivers.Endpoint:
		o.note(fmt.Sprint("endpoint, here: ", obj.Local))
	case drivers.Rule:
		o.note("rule")
	case drivers.Service:
		o.note("service")
	}
	o.Driver.Apply(obj)
}

func (o *order) Delete(k drivers.Kind, id string) {
	switch k {
	case drivers.KindEndpoint:
		o.note("no endpoint")
	case drivers.KindRule:
		o.note("no rule")
	}
	o.Driver.Delete(k, id)
}

// next returns what has been noted once it is n lines or more.
func (o *order) next(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	eventually.True(t, fmt.Sprint(n, " objects"), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		out = append([]string(nil), o.noted...)
		return len(out) >= n
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noted = nil
	return out
}

// A container counts as connected once the flows are there that were declared before its endpoint: so
// the endpoint comes after all that its tenant has, and its rules stay until it has gone.
func TestFirstEndpointComesLast(t *testing.T) {
	store := memory.New()
	put(t, store, state.GlobalKey, global)
	tenantRecords(t, store, "blue")
	o := &order{}
	a, _, _ := startWith(t, store, func(c *Config) {
		o.Driver = c.Driver
		c.AllTenants, c.Driver = false, o
	})
	eventually.Succeeds(t, "loaded", a.Ready)
	own := ownRecord("blue")
	put(t, store, state.EndpointRoot+own.ID, own)
	const total = endpointsOfTenant + rulesOfTenant + servicesOfTenant
	if got := o.next(t, total+1); got[total] != "endpoint, here: true" {
		t.Errorf("declared: %q", got)
	}
	commit(t, store, objdb.Delete(state.EndpointRoot+own.ID))
	got := o.next(t, endpointsOfTenant+1+rulesOfTenant)
	for i, what := range got {
		if (what == "no endpoint") != (i <= endpointsOfTenant) {
			t.Errorf("deleted: %q", got)
			break
		}
	}
}
