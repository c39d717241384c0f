package intent

import (
	"context"
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
)

func (r *reference) changePolicy(e *Engine, tenant string, add bool) (want, err error) {
	key := tenant + ":p"
	if add {
		if !r.tenants[tenant] {
			want = fmt.Errorf("no such tenant")
		}
		pending = func() { r.policies[key] = true }
		_, err = e.policies().Put(context.Background(), key, fmt.Appendf(nil, `{"tenantName":%q,"policyName":"p"}`, tenant))
		return want, err
	}
	if !r.policies[key] {
		want = fmt.Errorf("no such policy")
	}
	for _, p := range r.under {
		if p == key {
			want = fmt.Errorf("in use")
		}
	}
	pending = func() {
		delete(r.policies, key)
		for id, rule := range r.rules {
			if rule.policy == key {
				delete(r.rules, id)
			}
		}
	}
	return want, e.policies().Delete(context.Background(), key)
}

func (r *reference) changeRule(t *rapid.T, e *Engine, tenant string, add bool) (want, err error) {
	id := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rule")
	key := tenant + ":p:" + id
	_, exists := r.rules[key]
	if !add {
		if !exists {
			want = fmt.Errorf("no such rule")
		}
		pending = func() { delete(r.rules, key) }
		return want, e.rules().Delete(context.Background(), key)
	}
	body := contivmodel.Rule{TenantName: tenant, PolicyName: "p", RuleID: id, Direction: "in", Action: "allow"}
	rule := refRule{policy: tenant + ":p", records: 1}
	if exists || !r.policies[rule.policy] {
		want = fmt.Errorf("exists, or there is no policy")
	}
	switch rapid.IntRange(0, 2).Draw(t, "names") {
	case 1:
		body.FromEndpointGroup, rule.group = "g1", tenant+":g1"
		if r.groups[rule.group] == "" {
			want = fmt.Errorf("no such group")
		}
	case 2:
		body.FromNetwork, rule.network = "n1", tenant+":n1"
		if r.networks[rule.network] == "" {
			want = fmt.Errorf("no such network")
		}
	}
	if rapid.Bool().Draw(t, "has a port") {
		body.Protocol, body.Port, rule.records = "udp", 53, 2
	}
	text, merr := json.Marshal(body)
	if merr != nil {
		t.Fatal(merr)
	}
	pending = func() { r.rules[key] = rule }
	_, err = e.rules().Put(context.Background(), key, text)
	return want, err
}

func (r *reference) changeService(t *rapid.T, e *Engine, tenant, net string, add bool) (want, err error) {
	key := tenant + ":s"
	had := ""
	for n, of := range r.vips {
		if of[key] != "" {
			had = n
		}
	}
	if !add {
		if had == "" {
			want = fmt.Errorf("no such service")
		}
		pending = func() { delete(r.vips[had], key) }
		return want, e.services().Delete(context.Background(), key)
	}
	addr := r.lowest(net)
	switch {
	case r.networks[net] == "":
		want = fmt.Errorf("no such network")
	case had == net:
		addr = r.vips[net][key]
	case addr == "":
		want = fmt.Errorf("exhausted")
	}
	pending = func() {
		if had != "" {
			delete(r.vips[had], key)
		}
		r.vips[net][key] = addr
	}
	obj, err := e.services().Put(context.Background(), key, fmt.Appendf(nil,
		`{"tenantName":%q,"serviceName":"s","networkName":%q,"ports":["80:80:TCP"],"selectors":["a=b"]}`, tenant, net[len(tenant)+1:]))
	if err == nil && want == nil {
		if vip := e.model.services.records.base["s:"+tenant].v.IPAddress; vip != addr {
			t.Fatalf("%v got %s, expected %s", obj, vip, addr)
		}
	}
	return want, err
}

// named reports whether a rule names a group or network, or an app profile a group.
func (r *reference) named(key string) bool {
	for _, rule := range r.rules {
		if rule.group == key || rule.network == key {
			return true
		}
	}
	for _, group := range r.apps {
		if group == key {
			return true
		}
	}
	return false
}

// addThing creates what groups may use, perhaps once more. Contracts groups cannot be
// created twice.
func (r *reference) addThing(tenant, what string, coll Collection, fields string) (want, err error) {
	key := tenant + ":x"
	if !r.tenants[tenant] || what == "contracts" && r.things[what+" "+key] {
		want = fmt.Errorf("no tenant, or exists")
	}
	pending = func() { r.things[what+" "+key] = true }
	_, err = coll.Put(context.Background(), key, fmt.Appendf(nil, `{"tenantName":%q,%s}`, tenant, fields))
	return want, err
}

func (r *reference) removeThing(tenant, what string, coll Collection) (want, err error) {
	thing := what + " " + tenant + ":x"
	if !r.things[thing] {
		want = fmt.Errorf("no such thing")
	}
	for _, used := range r.uses {
		if used == thing {
			want = fmt.Errorf("in use")
		}
	}
	pending = func() { delete(r.things, thing) }
	return want, coll.Delete(context.Background(), tenant+":x")
}

// changeApp creates an app profile of one group in a tenant, or removes it.
func (r *reference) changeApp(e *Engine, tenant, group string, add bool) (want, err error) {
	key := tenant + ":a"
	if !add {
		if r.apps[key] == "" {
			want = fmt.Errorf("no such app profile")
		}
		pending = func() { delete(r.apps, key) }
		return want, e.appProfiles().Delete(context.Background(), key)
	}
	if r.groups[group] == "" {
		want = fmt.Errorf("no such group")
	}
	pending = func() { r.apps[key] = group }
	_, err = e.appProfiles().Put(context.Background(), key,
		fmt.Appendf(nil, `{"tenantName":%q,"appProfileName":"a","endpointGroups":[%q]}`, tenant, group[len(tenant)+1:]))
	return want, err
}

// lowest is the lowest free address of a network, or "".
func (r *reference) lowest(net string) string {
	if r.networks[net] == "" {
		return ""
	}
	taken := r.taken(net)
	for _, a := range usable(r.networks[net]) {
		if !taken[a] {
			return a
		}
	}
	return ""
}

func (r *reference) taken(net string) map[string]bool {
	taken := map[string]bool{}
	for _, of := range []map[string]string{r.endpoints[net], r.vips[net]} {
		for _, a := range of {
			taken[a] = true
		}
	}
	return taken
}

// records is how many rule records there should be.
func (r *reference) records() int {
	n := 0
	for _, rule := range r.rules {
		for _, p := range r.under {
			if p == rule.policy {
				n += rule.records
			}
		}
	}
	return n
}
