package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/identity"
)

// recorded are connections from web to db of tenant blue, as the agent of their host tells them.
func recorded() []flowapi.Event {
	at := time.Now().Add(-time.Minute).UTC()
	record := func(id string, port uint16, verdict flowapi.Verdict) flowapi.Event {
		return flowapi.Event{Record: &flowapi.Record{
			ID: id, Start: at, Hosts: []string{"h1"}, Tenant: "blue", Verdict: verdict, Proto: "tcp", Count: 1,
			Src:       flowapi.End{Address: netip.MustParseAddr("10.1.1.1"), Port: 40000, Endpoint: "net.blue-c1", Name: "c1", Group: "web", Host: "h1"},
			Dst:       flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: port, Endpoint: "net.blue-c2", Name: "c2", Group: "db", Host: "h1"},
			Decisions: []flowapi.Decision{{Host: "h1", At: flowapi.AtBoth, By: flowapi.ByDefault, Verdict: verdict}},
		}}
	}
	return []flowapi.Event{
		record("1", 5432, flowapi.Allowed), record("2", 22, flowapi.Allowed), record("3", 23, flowapi.Denied), {Heartbeat: &flowapi.Heartbeat{Live: true}},
	}
}

// whatIfAgent answers as agents do, for h1.
func whatIfAgent(t *testing.T) int {
	return agent(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case flowapi.PathAgent:
			if _, err := flowapi.ParseFilter(r.URL.Query()); err != nil {
				t.Errorf("the agent is asked for %s: %v", r.URL, err)
			}
			for _, e := range recorded() {
				_ = json.NewEncoder(w).Encode(e)
			}
		case flowapi.PathAgentHits:
			w.Header().Set(flowapi.HeaderSince, "2026-01-02T15:04:05Z")
			_ = json.NewEncoder(w).Encode([]flowapi.Hits{
				{Tenant: "blue", By: flowapi.ByRule, Policy: "guard", Rule: "1", Verdict: flowapi.Denied, Count: 3, Last: time.Unix(1e9, 0).UTC(), Minutes: []uint32{1, 2}},
				{Tenant: "blue", By: flowapi.ByDefault, Verdict: flowapi.Allowed, Count: 7},
				{Tenant: "red", By: flowapi.ByDefault, Verdict: flowapi.Allowed, Count: 9},
			})
		case flowapi.PathAgentTests:
			_ = json.NewEncoder(w).Encode(flowapi.Preview{Examined: 5, WouldDeny: 1, Denied: []flowapi.PreviewedFlow{{Record: *recorded()[0].Record}}})
		default:
			http.NotFound(w, r)
		}
	})
}

// world are two groups of tenant blue with an endpoint each, and a rule against telnet.
func whatIfObjects() []exchange {
	objects := []exchange{{"POST", "/api/v1/tenants/blue/", `{"tenantName":"blue"}`, 200, "~blue"}, {"POST", "/api/v1/tenants/red/", `{"tenantName":"red"}`, 200, "~red"}}
	post := func(path, body string) { objects = append(objects, exchange{"POST", path, body, 200, "~"}) }
	post("/api/v1/networks/blue:net/", `{"tenantName":"blue","networkName":"net","subnet":"10.1.1.0/24","encap":"vxlan"}`)
	post("/api/v1/policys/blue:guard/", `{"tenantName":"blue","policyName":"guard"}`)
	post("/api/v1/endpointGroups/blue:web/", `{"tenantName":"blue","groupName":"web","networkName":"net"}`)
	post("/api/v1/endpointGroups/blue:db/", `{"tenantName":"blue","groupName":"db","networkName":"net","policies":["guard"]}`)
	post("/api/v1/rules/blue:guard:1/", `{"tenantName":"blue","policyName":"guard","ruleId":"1","direction":"in","protocol":"tcp","port":23,"action":"deny","priority":10}`)
	post("/api/v1/serviceLBs/blue:data/", `{"tenantName":"blue","serviceName":"data","networkName":"net","ports":["54:5432:TCP"],"selectors":["app=db"]}`)
	post("/plugin/createEndpoint", `{"TenantName":"blue","NetworkName":"net","ServiceName":"web","EndpointID":"c1","ConfigEP":{"Container":"c1","Host":"h1","ServiceName":"web"}}`)
	post("/plugin/createEndpoint", `{"TenantName":"blue","NetworkName":"net","ServiceName":"db","EndpointID":"c2","ConfigEP":{"Container":"c2","Host":"h1","ServiceName":"db"}}`)
	return objects
}

// What rules decide, would decide and have decided is told to those who may see it, and asking
// changes nothing.
func TestWhatIf(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	cfg.AgentPort = whatIfAgent(t)
	base := apitest.Start(t, store, cfg)
	play(t, base, whatIfObjects())
	register(t, store, "netplugin", "127.0.0.1", "h1")
	admin := identity.Identity{Kind: identity.User, Name: "root", Grants: []identity.Grant{{Role: identity.Admin}}}
	red := identity.Identity{Kind: identity.User, Name: "rob", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "red"}}}
	put := func(rule string) string {
		return fmt.Sprintf(`{"changes":[{"verb":"put","kind":"rules","key":"blue:guard:2","object":%s}]}`, rule)
	}
	const denyAll = `{"tenantName":"blue","policyName":"guard","ruleId":"2","direction":"in","fromEndpointGroup":"web","action":"deny","priority":1}`
	const remove = `{"changes":[{"verb":"delete","kind":"rules","key":"blue:guard:1"}]}`
	ask(t, base, []asked{
		{admin, "GET", "/api/v1/explain/?from=c1&to=c2&port=23", "", 200, []string{`"verdict":"denied"`}},
		{admin, "GET", "/api/v1/explain/?from=c1&to=c2&port=23", "", 200, []string{`"policy":"guard","rule":"1","verdict":"denied"`}},
		{admin, "GET", "/api/v1/explain/?from=c1&to=c2&port=23", "", 200, []string{`tcp from net.blue-c1 to net.blue-c2 is denied at port 23: denied by rule guard/1 on host h1; host h1 has not applied`}},
		{blueOps, "GET", "/api/v1/explain?from=c2&to=c1&port=23", "", 200, []string{`"by":"default","verdict":"allowed"`, "!guard"}},
		{blueOps, "GET", "/api/v1/explain?from=c1&to=10.1.1.2&proto=udp&port=23", "", 200, []string{`"verdict":"allowed"`, "!denied"}},
		{red, "GET", "/api/v1/explain?from=c1&to=c2", "", 500, []string{"no endpoint", "!guard"}},
		{red, "GET", "/api/v1/explain?from=c1&to=c2&tenant=blue", "", 500, []string{"no endpoint", "!guard"}},
		{admin, "GET", "/api/v1/explain?from=c1&to=c2&port=0", "", 500, []string{"expected 1 to 65535"}},
		{blueOps, "POST", "/api/v1/preview/", put(denyAll), 200, []string{`"examined":3,"wouldDeny":2,"wouldAllow":0`}},
		{blueOps, "POST", "/api/v1/preview/", put(denyAll), 200, []string{`"policy":"guard","rule":"2","verdict":"denied"`}},
		{blueOps, "POST", "/api/v1/preview/", remove, 200, []string{`"wouldDeny":0,"wouldAllow":1`}},
		{admin, "POST", "/api/v1/preview/", `{"changes":[{"verb":"put","kind":"endpointGroups","key":"blue:db","object":{"tenantName":"blue","groupName":"db","networkName":"net","policies":[]}}]}`, 200, []string{`"wouldAllow":1`}},
		{red, "POST", "/api/v1/preview/", remove, 403, []string{"role ops", "!guard/1"}},
		{blueViewer, "POST", "/api/v1/preview/", remove, 403, []string{"role ops"}},
		{blueOps, "POST", "/api/v1/preview/", put(strings.Replace(denyAll, `"web"`, `"nobody"`, 1)), 500, []string{"EndpointGroup not found: blue:nobody"}},
		{blueOps, "POST", "/api/v1/preview/", put(strings.Replace(denyAll, `"blue"`, `"red"`, 1)), 500, nil},
		{blueOps, "POST", "/api/v1/preview/", `{"changes":[{"verb":"drop","kind":"rules","key":"blue:guard:1"}]}`, 500, []string{"expected put or delete"}},
		{blueOps, "POST", "/api/v1/preview/", `{"changes":[{"verb":"put","kind":"things","key":"blue:guard:1"}]}`, 500, []string{"expected the name of a collection"}},
		{blueOps, "POST", "/api/v1/preview/", `{}`, 500, []string{"expected changes or networkPolicies"}},
		{admin, "POST", "/api/v1/preview/", `{"networkPolicies":[{}]}`, 200, []string{`"examined":5,"wouldDeny":1`}},
		{blueOps, "POST", "/api/v1/preview/", `{"networkPolicies":[{}]}`, 403, []string{"role admin"}},
		{blueOps, "GET", "/api/v1/flows/hits/", "", 200, []string{`"policy":"guard","rule":"1","verdict":"denied","count":3`, "!red"}},
		{admin, "GET", "/api/v1/flows/hits/", "", 200, []string{`"since":"2026-01-02T15:04:05Z"`}},
		{admin, "GET", "/api/v1/flows/hits?tenant=red", "", 200, []string{`"count":9`, "!blue"}},
		{red, "GET", "/api/v1/flows/hits?tenant=blue", "", 403, []string{"role viewer or ops of that tenant"}},
		{blueOps, "GET", "/api/v1/flows/?port=22", "", 200, []string{`"id":"h1/2"`, `!"id":"h1/1"`}},
		{red, "GET", "/api/v1/flows/", "", 200, []string{`"live":true`, "!record"}},
		{red, "GET", "/api/v1/flows/?tenant=blue", "", 403, []string{"role viewer or ops", "!record"}},
		{blueOps, "GET", "/api/v1/flows/?after=1", "", 500, []string{"use since"}},
		{unknown, "GET", "/api/v1/flows/", "", 400, []string{"no token"}},
	})
	// No rehearsal has left anything.
	play(t, base, []exchange{
		{"GET", "/api/v1/rules/blue:guard:2/", "", 500, "~not found"},
		{"GET", "/api/v1/rules/blue:guard:1/", "", 200, "~deny"},
		{"POST", "/api/v1/rules/blue:guard:2/", denyAll, 200, "~guard"},
	})
	// A rule that never decided is listed.
	ask(t, base, []asked{{admin, "GET", "/api/v1/flows/hits/", "", 200, []string{`"rule":"2","verdict":"denied","count":0`}}})
}

// A stream lasts longer than a request may, and ends with its client.
func TestFlowsFollow(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	cfg.RequestTimeout = 50 * time.Millisecond
	release := make(chan struct{})
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, r *http.Request) {
		events := recorded()
		for i, e := range events {
			if i == 1 {
				_ = json.NewEncoder(w).Encode(events[3]) // live
				_ = http.NewResponseController(w).Flush()
				<-release
			}
			_ = json.NewEncoder(w).Encode(e)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	base := apitest.Start(t, store, cfg)
	register(t, store, "netplugin", "127.0.0.1", "h1")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/flows/?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i, want := range []string{`"h1/1"`, `"live":true`, `"h1/2"`, `"h1/3"`} {
		if i == 2 {
			time.Sleep(2 * cfg.RequestTimeout) // longer than other requests last
			close(release)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("%s, expected %s (%v)", lines.Text(), want, lines.Err())
		}
	}
}
