package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

const (
	profilePath = "/api/v1/netprofiles/"
	policyPath  = "/api/v1/policys/"
	rulePath    = "/api/v1/rules/"
)

// put is a request that creates or replaces an object of tenant default and succeeds.
func put(path, name, fields string) exchange {
	return exchange{"POST", path + "default:" + name + "/", `{"tenantName":"default",` + fields + `}`, 200, `~"tenantName":"default"`}
}

func network(name, subnet string) exchange {
	return put(networkPath, name, `"networkName":"`+name+`","encap":"vxlan","subnet":"`+subnet+`"`)
}

func group(name, more string) exchange {
	return put(groupPath, name, `"groupName":"`+name+`","networkName":"n1"`+more)
}

func rule(policy, id, fields string) exchange {
	return put(rulePath, policy+":"+id, `"policyName":"`+policy+`","ruleId":"`+id+`"`+fields)
}

// refused turns a request into one that fails.
func refused(x exchange, want string) exchange {
	x.status, x.want = 500, want
	return x
}

// saying turns a request into one whose answer is want.
func saying(x exchange, want string) exchange {
	x.want = want
	return x
}

func remove(path, key string) exchange {
	return exchange{"DELETE", path + key + "/", "", 200, `"` + key + `"`}
}

// records returns the rule records in the store, as "SRC>DST …" by the part of their
// id after the rule's policy.
func records(t *testing.T, store objdb.Store) map[string]string {
	t.Helper()
	kvs, _, err := store.List(t.Context(), state.PolicyRuleRoot)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range kvs {
		var r state.PolicyRule
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			t.Fatal(err)
		}
		if state.PolicyRuleRoot+r.RuleID != kv.Key {
			t.Errorf("record %s says it is %s", kv.Key, r.RuleID)
		}
		parts := strings.Split(r.RuleID, ":")
		all[parts[1]+" "+strings.Join(parts[6:], " ")] = fmt.Sprintf("%d>%d %s>%s", r.SrcEndpointGroup, r.DstEndpointGroup, r.SrcIPAddr, r.DstIPAddr)
	}
	return all
}

func TestNetprofiles(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	profile := func(fields string) exchange { return put(profilePath, "gold", `"profileName":"gold"`+fields) }
	limits := func(want string) {
		t.Helper()
		kv, err := store.Get(t.Context(), state.GroupRoot+"web:default")
		if err != nil {
			t.Fatal(err)
		}
		var g state.EndpointGroup
		if err := json.Unmarshal(kv.Value, &g); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%q %d %d", g.Bandwidth, g.DSCP, g.Burst); got != want {
			t.Errorf("the group has %s, want %s", got, want)
		}
	}
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"),
		refused(group("web", `,"netProfile":"gold"`), `netprofile not found: default:gold`),
		{"GET", inspect + "endpointGroups/default:web/", "", 500, `endpointGroup not found`},
		refused(profile(`,"burst":1`), `~burst 1 of netprofile default:gold is too small`),
		refused(profile(`,"DSCP":64`), `DSCP Value Out of bound`),
		refused(profile(`,"DSCP":-1`), `DSCP Value Out of bound`),
		refused(profile(`,"burst":-5`), `burst Value Out of bound`),
		refused(profile(`,"burst":10487`), `burst Value Out of bound`),
		refused(profile(`,"bandwidth":"10 kB"`), `bandwidth string invalid format`),
		refused(profile(`,"bandwidth":"`+strings.Repeat("1", 64)+`g"`), `bandwidth string too long`),
		refused(put(profilePath, "a_b", `"profileName":"a_b"`), `profileName string invalid format`),
		refused(exchange{"POST", profilePath + "red:gold/", `{"tenantName":"red","profileName":"gold"}`, 0, ""}, `Tenant not found: red`),
		saying(profile(`,"bandwidth":"10 Gbps","burst":20,"DSCP":10`), `{"key":"default:gold","DSCP":10,"bandwidth":"10 Gbps","burst":20,`+
			`"profileName":"gold","tenantName":"default","link-sets":{},"links":{"Tenant":{"type":"tenant","key":"default"}}}`),
		saying(group("web", `,"netProfile":"gold"`), `~"links":{"AppProfile":{},"NetProfile":{"type":"netprofile","key":"default:gold"},`),
		{
			"GET", inspect + "netprofiles/default:gold/", "", 200,
			`{"Config":{"key":"default:gold","DSCP":10,"bandwidth":"10 Gbps","burst":20,"profileName":"gold","tenantName":"default",` +
				`"link-sets":{"EndpointGroups":{"default:web":{"type":"endpointGroup","key":"default:web"}}},"links":{"Tenant":{"type":"tenant","key":"default"}}}}`,
		},
	})
	limits(`"10 Gbps" 10 20`)
	play(t, base, []exchange{profile(`,"bandwidth":"5mbps"`)})
	limits(`"5mbps" 0 0`)
	play(t, base, []exchange{refused(profile(`,"burst":1`), `~too small`)})
	limits(`"5mbps" 0 0`)
	play(t, base, []exchange{
		{"DELETE", profilePath + "default:gold/", "", 500, `NetProfile is being used: default:gold by endpoint groups default:web`},
		refused(group("web", `,"netProfile":"silver"`), `netprofile not found: default:silver`),
	})
	limits(`"5mbps" 0 0`) // a failed update leaves the group as it was
	play(t, base, []exchange{group("web", "")})
	limits(`"" 0 0`)
	play(t, base, []exchange{
		{"GET", tenantPath + "default/", "", 200, `~"NetProfiles":{"default:gold":{"type":"netprofile","key":"default:gold"}}`},
		remove(groupPath, "default:web"), remove(networkPath, "default:n1"),
		{"DELETE", tenantPath + "default/", "", 500, `cannot delete tenant default: it has 1 net profiles`},
		remove(profilePath, "default:gold"),
		{"DELETE", profilePath + "default:gold/", "", 500, `netprofile not found`},
		remove(tenantPath, "default"),
	})
}

func TestPolicies(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"),
		saying(put(policyPath, "p1", `"policyName":"p1"`), `{"key":"default:p1","policyName":"p1","tenantName":"default","link-sets":{},`+
			`"links":{"Tenant":{"type":"tenant","key":"default"}}}`),
		put(policyPath, "p1", `"policyName":"p1"`), // again
		put(policyPath, "p2", `"policyName":"p2"`),
		refused(exchange{"POST", policyPath + "red:p/", `{"tenantName":"red","policyName":"p"}`, 0, ""}, `Tenant not found: red`),
		refused(group("web", `,"policies":["p1","p3"]`), `Policy not found: default:p3`),
		group("app", ""),
		saying(group("web", `,"policies":["p1"]`), `~"link-sets":{"Policies":{"default:p1":{"type":"policy","key":"default:p1"}}}`),
		saying(rule("p1", "1", `,"direction":"in","action":"allow","protocol":"tcp","port":80,"fromEndpointGroup":"app"`),
			`{"key":"default:p1:1","action":"allow","direction":"in","fromEndpointGroup":"app","policyName":"p1","port":80,"priority":1,`+
				`"protocol":"tcp","ruleId":"1","tenantName":"default","link-sets":{"Policies":{"default:p1":{"type":"policy","key":"default:p1"}}},`+
				`"links":{"MatchEndpointGroup":{"type":"endpointGroup","key":"default:app"}}}`),
		rule("p2", "1", `,"direction":"out","action":"deny"`),
		{"GET", groupPath + "default:app/", "", 200, `~"MatchRules":{"default:p1:1":{"type":"rule","key":"default:p1:1"}}`},
		{
			"GET", policyPath + "default:p1/", "", 200, `{"key":"default:p1","policyName":"p1","tenantName":"default","link-sets":{` +
				`"EndpointGroups":{"default:web":{"type":"endpointGroup","key":"default:web"}},` +
				`"Rules":{"default:p1:1":{"type":"rule","key":"default:p1:1"}}},"links":{"Tenant":{"type":"tenant","key":"default"}}}`,
		},
	})
	check := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, records(t, store)); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	}
	check(map[string]string{"web 1 inRx": "1>2 >", "web 1 inTx": "2>1 >"})
	// One rule more touches only its own records.
	before, _, err := store.List(t.Context(), state.PolicyRuleRoot)
	if err != nil {
		t.Fatal(err)
	}
	play(t, base, []exchange{rule("p1", "2", `,"direction":"in","action":"deny","fromIpAddress":"10.9.1.1/16"`)})
	check(map[string]string{"web 1 inRx": "1>2 >", "web 1 inTx": "2>1 >", "web 2 inRx": "0>2 10.9.0.0/16>"})
	for _, kv := range before {
		if now, err := store.Get(t.Context(), kv.Key); err != nil || now.ModRevision != kv.ModRevision {
			t.Errorf("%s was written again, %v", kv.Key, err)
		}
	}
	play(t, base, []exchange{group("app", `,"policies":["p2","p1"]`)})
	check(map[string]string{
		"web 1 inRx": "1>2 >", "web 1 inTx": "2>1 >", "web 2 inRx": "0>2 10.9.0.0/16>",
		"app 1 inRx": "1>1 >", "app 1 inTx": "1>1 >", "app 2 inRx": "0>1 10.9.0.0/16>", "app 1 outTx": "1>0 >",
	})
	play(t, base, []exchange{
		{
			"POST", "/plugin/createEndpoint",
			`{"TenantName":"default","NetworkName":"n1","ConfigEP":{"Container":"c1","Host":"h1","ServiceName":"app"}}`, 200, `~10.1.1.1`,
		},
		{"GET", inspect + "policys/default:p2/", "", 200, `~"endpointID":"c1"`},
		{"GET", inspect + "policys/default:p2/", "", 200, `~"numEndpoints":1`},
		{"GET", inspect + "tenants/default/", "", 200, `~"totalPolicies":2`},
		group("web", ""), group("app", `,"policies":["p2"]`),
	})
	check(map[string]string{"app 1 outTx": "1>0 >"})
	play(t, base, []exchange{
		{"DELETE", policyPath + "default:p2/", "", 500, `Policy is being used: default:p2 by endpoint groups default:app`},
		{"DELETE", groupPath + "default:app/", "", 500, `~EPG app has active endpoints`},
		{
			"POST", "/plugin/deleteEndpoint", `{"TenantName":"default","NetworkName":"n1","EndpointID":"c1"}`, 200, `~10.1.1.1`,
		},
		{"DELETE", groupPath + "default:app/", "", 500, `cannot delete endpoint group default:app: it is named by rules: default:p1:1`},
		remove(policyPath, "default:p1"), // its rules go with it
		{"GET", rulePath + "default:p1:1/", "", 500, `rule not found`},
		remove(groupPath, "default:app"), remove(groupPath, "default:web"), remove(networkPath, "default:n1"),
		{"DELETE", tenantPath + "default/", "", 500, `cannot delete tenant default: it has 1 policies`},
		remove(rulePath, "default:p2:1"), remove(policyPath, "default:p2"),
		remove(tenantPath, "default"),
	})
	check(map[string]string{})
}

func TestRules(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	in := func(fields string) exchange { return rule("p1", "x", `,"direction":"in","action":"allow"`+fields) }
	out := func(fields string) exchange { return rule("p1", "x", `,"direction":"out","action":"allow"`+fields) }
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"), network("n2", "10.2.1.10-10.2.1.20/24"),
		put(policyPath, "p1", `"policyName":"p1"`), put(policyPath, "p2", `"policyName":"p2"`),
		group("web", `,"policies":["p1"]`), group("app", `,"policies":["p2"]`), group("db", `,"policies":["p2"]`),
		refused(in(`,"action":"accept"`), `action string invalid format`),
		refused(in(`,"direction":"both"`), `direction string invalid format`),
		refused(in(`,"protocol":"xyz"`), `protocol string invalid format`),
		refused(in(`,"protocol":"256"`), `protocol string invalid format`),
		refused(in(`,"protocol":"1000"`), `protocol string invalid format`),
		refused(in(`,"port":-1`), `port Value Out of bound`),
		refused(in(`,"port":65536`), `port Value Out of bound`),
		refused(in(`,"priority":101`), `priority Value Out of bound`),
		refused(in(`,"priority":-1`), `priority Value Out of bound`),
		refused(in(`,"fromEndpointGroup":"a."`), `fromEndpointGroup string invalid format`),
		refused(in(`,"fromIpAddress":"10.1.1.10-20"`), `fromIpAddress string invalid format`),
		refused(in(`,"fromIpAddress":"10.1.1.0/33"`), `fromIpAddress string invalid format`),
		refused(in(`,"toNetwork":"n1"`), `~toNetwork and toEndpointGroup are not for direction in`),
		refused(in(`,"toEndpointGroup":"app"`), `~toNetwork and toEndpointGroup are not for direction in`),
		refused(in(`,"fromNetwork":"n1","fromIpAddress":"10.1.1.1"`), `~fromNetwork and fromIpAddress exclude each other`),
		refused(in(`,"fromNetwork":"n1","fromEndpointGroup":"app"`), `~fromNetwork and fromEndpointGroup exclude each other`),
		refused(out(`,"fromNetwork":"n1"`), `~are not for direction out`),
		refused(out(`,"fromEndpointGroup":"app"`), `~are not for direction out`),
		refused(out(`,"fromIpAddress":"10.1.1.1"`), `~are not for direction out`),
		refused(out(`,"toNetwork":"n1","toIpAddress":"10.1.1.1"`), `~toNetwork and toIpAddress exclude each other`),
		refused(out(`,"toNetwork":"n1","toEndpointGroup":"app"`), `~toNetwork and toEndpointGroup exclude each other`),
		refused(in(`,"fromEndpointGroup":"nobody"`), `EndpointGroup not found: default:nobody`),
		refused(out(`,"toNetwork":"nowhere"`), `Network not found: default:nowhere`),
		refused(rule("p3", "x", `,"direction":"in","action":"allow"`), `Policy not found: default:p3`),
		refused(in(`,"toIpAddress":"10.1.1.1"`), `~no endpoint of group default:web has address 10.1.1.1`),
		refused(rule("p2", "x", `,"direction":"in","action":"allow","toIpAddress":"10.1.1.1"`), `~expected exactly one endpoint group under policy default:p2, there are 2`),
		{
			"POST", "/plugin/createEndpoint",
			`{"TenantName":"default","NetworkName":"n1","ConfigEP":{"Container":"c1","Host":"h1","ServiceName":"web"}}`, 200, `~10.1.1.1`,
		},
		rule("p1", "local", `,"direction":"in","action":"allow","toIpAddress":"10.1.1.1"`),
		rule("p1", "host", `,"direction":"in","action":"allow","fromIpAddress":"10.9.9.9/32","fromEndpointGroup":"app"`),
		// The rule is kept as the user wrote it.
		saying(rule("p1", "net", `,"direction":"out","action":"allow","toNetwork":"n2"`), `{"key":"default:p1:net","action":"allow","direction":"out",`+
			`"policyName":"p1","priority":1,"ruleId":"net","tenantName":"default","toNetwork":"n2",`+
			`"link-sets":{"Policies":{"default:p1":{"type":"policy","key":"default:p1"}}},"links":{"MatchEndpointGroup":{}}}`),
		refused(rule("p1", "net", `,"direction":"out","action":"allow","toNetwork":"n2"`), `~rule default:p1:net exists`),
		{"GET", inspect + "rules/default:p1:local/", "", 200, `~{"Config":{"key":"default:p1:local"`},
		{"DELETE", networkPath + "default:n2/", "", 500, `cannot delete network default:n2: it is named by rules: default:p1:net`},
		{"DELETE", groupPath + "default:app/", "", 500, `~it is named by rules: default:p1:host`},
		{"GET", rulePath, "", 200, `~[{"key":"default:p1:host"`},
	})
	want := map[string]string{"web local inRx": "0>1 >10.1.1.1", "web host inRx": "2>1 10.9.9.9>", "web net outTx": "1>0 >10.2.1.0/24"}
	if diff := cmp.Diff(want, records(t, store)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	play(t, base, []exchange{
		remove(rulePath, "default:p1:net"), remove(rulePath, "default:p1:host"), remove(networkPath, "default:n2"),
		remove(groupPath, "default:app"), remove(groupPath, "default:db"),
	})
	delete(want, "web host inRx")
	delete(want, "web net outTx")
	if diff := cmp.Diff(want, records(t, store)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestPoliciesInACI checks that in ACI mode, where the fabric enforces policies, there
// are no rule records, and that nobody is told that app profiles have been applied.
func TestPoliciesInACI(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	cfg.Infra = "aci"
	base := apitest.Start(t, store, cfg)
	play(t, base, []exchange{
		put(networkPath, "n1", `"networkName":"n1","encap":"vlan","subnet":"10.1.1.0/24"`),
		put(policyPath, "p1", `"policyName":"p1"`),
		group("web", `,"policies":["p1"]`),
		rule("p1", "1", `,"direction":"in","action":"allow"`),
	})
	if got := records(t, store); len(got) != 0 {
		t.Errorf("records %v", got)
	}
}

// TestRuleHits: inspecting a policy sums up what its rules have decided on all hosts, and
// names the hosts that do not say.
func TestRuleHits(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	answer := `{"default:web:default:p:default:p:1:inRx":{"packets":3,"bytes":300},"default:app:default:p:default:p:1:inTx":{"packets":1,"bytes":50},"default:web:default:q:default:q:1:inRx":{"packets":9,"bytes":9}}`
	status := http.StatusOK
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/inspect/rules" {
			t.Errorf("an agent is asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})
	base := apitest.Start(t, store, cfg)
	object := func(path, key, fields string) exchange {
		return exchange{"POST", path + "default:" + key + "/", `{"tenantName":"default",` + fields + `}`, 200, `~`}
	}
	oper := func(want string) exchange { return exchange{"GET", inspect + "policys/default:p/", "", 200, want} }
	play(t, base, []exchange{
		object(networkPath, "n", `"networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24"`),
		object(policyPath, "p", `"policyName":"p"`),
		object(rulePath, "p:1", `"policyName":"p","ruleId":"1","priority":1,"direction":"in","action":"allow","protocol":"tcp","port":80`),
		object(rulePath, "p:2", `"policyName":"p","ruleId":"2","priority":1,"direction":"in","action":"deny"`),
	})
	register(t, store, "netplugin", "127.0.0.1", "h1")
	play(t, base, []exchange{
		oper(`~"Oper":{}}`), // nobody is under it, nobody is asked
		object(groupPath, "web", `"groupName":"web","networkName":"n","policies":["p"]`),
		object(groupPath, "app", `"groupName":"app","networkName":"n","policies":["p"]`),
		oper(`~"Oper":{"ruleHits":[{"rule":"default:p:1","packets":4,"bytes":350},{"rule":"default:p:2","packets":0,"bytes":0}]}}`),
	})
	register(t, store, "netplugin", "localhost", "h2") // the same agent answers for it
	play(t, base, []exchange{oper(`~{"rule":"default:p:1","packets":8,"bytes":700}`)})
	status = http.StatusNotFound
	play(t, base, []exchange{oper(`~"Oper":{"silentHosts":["h1","h2"]}}`)})
}
