package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// reference is the expected state, as simple as possible.
type reference struct {
	tenants   map[string]bool
	networks  map[string]string            // key → subnet
	groups    map[string]string            // key → network key
	endpoints map[string]map[string]string // network key → container → address
	under     map[string]string            // group key → key of its policy, or ""
	policies  map[string]bool
	things    map[string]bool              // net profiles and contracts groups, as "profile <key>", "contracts <key>"
	uses      map[string]string            // group key → the one thing it uses, or ""
	apps      map[string]string            // app profile key → key of its group
	rules     map[string]refRule           // by key
	vips      map[string]map[string]string // network key → service key → address
}

// refRule is the part of a rule that others depend on.
type refRule struct {
	policy, group, network string // keys; the last two may be empty
	records                int    // per group under the policy
}

// subnets of the random networks; the first two overlap.
var testSubnets = []string{"10.1.1.0/29", "10.1.1.4/30", "10.2.1.0/30", "10.3.1.2-10.3.1.4/29"} // a table

func overlap(a, b string) bool {
	pa, _ := contivmodel.ParseSubnet(a)
	pb, _ := contivmodel.ParseSubnet(b)
	return pa.Range.Overlaps(pb.Range)
}

// usable lists the host addresses of a subnet.
func usable(subnet string) []string {
	s, _ := contivmodel.ParseSubnet(subnet)
	var all []string
	for a := s.Prefix.Addr().Next(); s.Prefix.Contains(a.Next()); a = a.Next() {
		if s.Range.Contains(a) {
			all = append(all, a.String())
		}
	}
	return all
}

// TestRandomOperations applies random operations to an engine whose store fails at random,
// and to the reference. After each step the engine's reply is what the reference expects,
// whatever the store did, and memory and store are equal. From time to time a new leader
// takes over.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memory.New()
		e, _, stop := lead(t, store)
		defer func() { stop() }()
		ref := &reference{
			tenants: map[string]bool{"default": true}, networks: map[string]string{}, groups: map[string]string{},
			endpoints: map[string]map[string]string{}, under: map[string]string{}, policies: map[string]bool{}, rules: map[string]refRule{},
			vips: map[string]map[string]string{}, things: map[string]bool{}, uses: map[string]string{}, apps: map[string]string{},
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 15).Draw(t, "leader") == 0 {
				stop()
				e, _, stop = lead(t, store)
				ref.tenants["default"] = true // every leader creates it
			}
			refuse := inject(t, store)
			want, err := ref.step(t, e)
			store.OnCommit(nil)
			switch {
			case want == nil && *refuse:
				if !errs.Is(err, errs.Invalid) {
					t.Fatalf("the store refused, the answer was %v", err)
				}
			case (err == nil) != (want == nil):
				t.Fatalf("the answer was %v, expected %v", err, want)
			case want == nil:
				ref.apply(t)
			}
			pending = nil
			e.checkConsistent(t)
			ref.compare(t, e)
		}
	})
}

// inject makes the next commits fail as drawn: not applied, applied without a reply, or
// rejected for good.
func inject(t *rapid.T, store *memory.Store) (refused *bool) {
	refused = new(bool)
	away := errs.New(errs.Unavailable, "the store is unavailable")
	faults := rapid.SliceOfN(rapid.SampledFrom([]string{"before", "after", "refuse"}), 0, 3).Draw(t, "faults")
	if rapid.Bool().Draw(t, "sound") {
		faults = nil
	}
	store.OnCommit(func(objdb.Txn) memory.Fault {
		if len(faults) == 0 {
			return memory.Fault{}
		}
		next := faults[0]
		faults = faults[1:]
		switch next {
		case "before":
			return memory.Fault{Before: away}
		case "after":
			faults = nil // it is in the store: later commits cannot be rejected
			return memory.Fault{After: away}
		default:
			faults = nil
			*refused = true
			return memory.Fault{Before: errs.New(errs.Invalid, "the store does not like it")}
		}
	})
	return refused
}

// pending is what the last step does to the reference if it succeeds.
var pending func() // rapid runs one case at a time

func (r *reference) apply(t *rapid.T) {
	t.Helper()
	if pending != nil {
		pending()
	}
}

// step applies one random operation. want is nil if it should succeed.
func (r *reference) step(t *rapid.T, e *Engine) (want, err error) {
	tenant := rapid.SampledFrom([]string{"default", "t1"}).Draw(t, "tenant")
	net := tenant + ":" + rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "network")
	group := tenant + ":" + rapid.SampledFrom([]string{"g1", "n2"}).Draw(t, "group")
	no := fmt.Errorf("a refusal")
	ctx := context.Background()
	op := rapid.SampledFrom([]string{
		"tenant+", "tenant-", "net+", "net-", "group+", "group+", "group-", "ep+", "ep+", "ep+", "ep-", "ep-",
		"policy+", "policy+", "policy-", "rule+", "rule+", "rule-", "service+", "service-",
		"profile+", "profile-", "contracts+", "contracts-", "app+", "app-",
	}).Draw(t, "op")
	switch op {
	case "tenant+":
		if r.tenants[tenant] {
			want = no
		}
		pending = func() { r.tenants[tenant] = true }
		_, err = e.tenants().Put(ctx, tenant, fmt.Appendf(nil, `{"tenantName":%q}`, tenant))
	case "tenant-":
		if !r.tenants[tenant] || r.owns(tenant) {
			want = no
		}
		pending = func() { delete(r.tenants, tenant) }
		err = e.tenants().Delete(ctx, tenant)
	case "net+":
		subnet := rapid.SampledFrom(testSubnets).Draw(t, "subnet")
		if !r.mayHaveNetwork(tenant, net, subnet) {
			want = no
		}
		pending = func() {
			r.networks[net], r.endpoints[net], r.vips[net] = subnet, map[string]string{}, map[string]string{}
		}
		body, merr := json.Marshal(contivmodel.Network{TenantName: tenant, NetworkName: net[len(tenant)+1:], Subnet: subnet, Encap: "vlan"})
		if merr != nil {
			t.Fatal(merr)
		}
		_, err = e.networks().Put(ctx, net, body)
	case "net-":
		if r.networks[net] == "" || len(r.endpoints[net]) > 0 || r.hasGroups(net) || len(r.vips[net]) > 0 || r.named(net) {
			want = no
		}
		pending = func() { delete(r.networks, net); delete(r.endpoints, net); delete(r.vips, net) }
		err = e.networks().Delete(ctx, net)
	case "group+":
		if old, exists := r.groups[group]; exists && old != net || !exists && (r.networks[net] == "" || r.networks[group] != "") {
			want = no
		}
		g := contivmodel.EndpointGroup{TenantName: tenant, GroupName: group[len(tenant)+1:], NetworkName: net[len(tenant)+1:]}
		policy := ""
		if rapid.Bool().Draw(t, "under a policy") {
			policy, g.Policies = tenant+":p", []string{"p"}
			if !r.policies[policy] {
				want = no
			}
		}
		thing := rapid.SampledFrom([]string{"", "", "profile " + tenant + ":x", "contracts " + tenant + ":x"}).Draw(t, "uses")
		switch {
		case strings.HasPrefix(thing, "profile"):
			g.NetProfile = "x"
		case strings.HasPrefix(thing, "contracts"):
			g.ExtContractsGrps = []string{"x"}
		}
		if thing != "" && !r.things[thing] {
			want = no
		}
		pending = func() { r.groups[group], r.under[group], r.uses[group] = net, policy, thing }
		body, merr := json.Marshal(g)
		if merr != nil {
			t.Fatal(merr)
		}
		_, err = e.groups().Put(ctx, group, body)
	case "group-":
		if r.groups[group] == "" || r.named(group) {
			want = no
		}
		pending = func() { delete(r.groups, group); delete(r.under, group); delete(r.uses, group) }
		err = e.groups().Delete(ctx, group)
	case "ep+":
		return r.createEndpoint(t, e, tenant, net)
	case "ep-":
		c := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "container")
		if r.endpoints[net][c] == "" {
			want = no
		}
		pending = func() { delete(r.endpoints[net], c) }
		_, err = e.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: tenant, NetworkName: net[len(tenant)+1:], EndpointID: c})
	case "profile+":
		return r.addThing(tenant, "profile", e.netprofiles(), `"profileName":"x","bandwidth":"1g"`)
	case "contracts+":
		return r.addThing(tenant, "contracts", e.contracts(), `"contractsGroupName":"x","contractsType":"provided"`)
	case "profile-":
		return r.removeThing(tenant, "profile", e.netprofiles())
	case "contracts-":
		return r.removeThing(tenant, "contracts", e.contracts())
	case "app+", "app-":
		return r.changeApp(e, tenant, group, op == "app+")
	case "policy+", "policy-":
		return r.changePolicy(e, tenant, op == "policy+")
	case "rule+", "rule-":
		return r.changeRule(t, e, tenant, op == "rule+")
	case "service+", "service-":
		return r.changeService(t, e, tenant, net, op == "service+")
	}
	return want, err
}

func (r *reference) owns(tenant string) bool {
	for _, keys := range []map[string]string{r.networks, r.groups} {
		for key := range keys {
			if strings.HasPrefix(key, tenant+":") {
				return true
			}
		}
	}
	return r.policies[tenant+":p"] || r.things["profile "+tenant+":x"] || r.things["contracts "+tenant+":x"] || r.apps[tenant+":a"] != ""
}

func (r *reference) mayHaveNetwork(tenant, net, subnet string) bool {
	if !r.tenants[tenant] || r.networks[net] != "" || r.groups[net] != "" {
		return false
	}
	for key, other := range r.networks {
		if strings.HasPrefix(key, tenant+":") && overlap(other, subnet) {
			return false
		}
	}
	return true
}

func (r *reference) hasGroups(net string) bool {
	for _, n := range r.groups {
		if n == net {
			return true
		}
	}
	return false
}

// createEndpoint requests an address or accepts any: the lowest free one.
func (r *reference) createEndpoint(t *rapid.T, e *Engine, tenant, net string) (want, err error) {
	c := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "container")
	subnet := r.networks[net]
	req := masterapi.CreateEndpointRequest{
		TenantName: tenant, NetworkName: net[len(tenant)+1:], ConfigEP: masterapi.ConfigEP{Container: c, Host: "h"},
	}
	addr := ""
	if subnet == "" {
		want = fmt.Errorf("no such network")
	} else {
		taken := r.taken(net)
		hosts := usable(subnet)
		if rapid.Bool().Draw(t, "wants an address") {
			addr = rapid.SampledFrom(append(hosts, "10.1.1.0", "192.0.2.1")).Draw(t, "address")
			req.ConfigEP.IPAddress = addr
			a := netip.MustParseAddr(addr)
			s, _ := contivmodel.ParseSubnet(subnet)
			if taken[addr] || !s.Range.Contains(a) || addr == "10.1.1.0" {
				want = fmt.Errorf("address not available")
			}
		} else {
			if addr = r.lowest(net); addr == "" {
				want = fmt.Errorf("exhausted")
			}
		}
	}
	if old := r.endpoints[net][c]; old != "" {
		addr, want = old, nil
	}
	pending = func() { r.endpoints[net][c] = addr }
	ch, err := e.CreateEndpoint(context.Background(), req)
	if err == nil && want == nil && ch.Endpoint.IPAddress != addr {
		t.Fatalf("%s of %s got %s, expected %s", c, net, ch.Endpoint.IPAddress, addr)
	}
	return want, err
}

// compare compares the engine with the reference.
func (r *reference) compare(t *rapid.T, e *Engine) {
	t.Helper()
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	eps := 0
	for net, of := range r.endpoints {
		eps += len(of)
		for c, addr := range of {
			n := m.networks.base[net].v
			ep := m.endpoints.base[n.NetworkName+"."+n.TenantName+"-"+c].v
			if ep == nil || ep.IPAddress != addr {
				t.Fatalf("endpoint %s of %s is %+v, expected %s", c, net, ep, addr)
			}
		}
	}
	vips := 0
	for _, of := range r.vips {
		vips += len(of)
	}
	got := []int{
		len(m.tenants.base), len(m.networks.base), len(m.groups.base), len(m.endpoints.base), len(m.addrs.base),
		len(m.policies.base), len(m.rules.base), len(m.rules.records.base), len(m.services.base), len(m.services.records.base),
		len(m.profiles.base) + len(m.contracts.base), len(m.apps.base),
	}
	want := []int{len(r.tenants), len(r.networks), len(r.groups), eps, eps + vips, len(r.policies), len(r.rules), r.records(), vips, vips, len(r.things), len(r.apps)}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("tenants, networks, groups, endpoints, claims, policies, rules, rule records, services, service records, things, apps: %v, expected %v", got, want)
	}
}
