package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/state/traceapi"
)

var (
	blueOps    = identity.Identity{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}
	blueViewer = identity.Identity{Kind: identity.User, Name: "vic", Grants: []identity.Grant{{Role: identity.Viewer, Tenant: "blue"}}}
	viewer     = identity.Identity{Kind: identity.User, Name: "vera", Grants: []identity.Grant{{Role: identity.Viewer}}}
	onHost1    = identity.Identity{Kind: identity.Host, Name: "host1"}
	onHost2    = identity.Identity{Kind: identity.Host, Name: "host2"}
	unknown    = identity.Identity{Kind: identity.Anonymous}
)

// asked is what somebody sends, and what comes back: a status, and with it texts that are
// in the answer, or with a "!" before it not in it.
type asked struct {
	id           identity.Identity
	method, path string
	body         string
	status       int
	want         []string
}

func ask(t *testing.T, base string, all []asked) {
	t.Helper()
	for _, a := range all {
		id, err := json.Marshal(a.id)
		if err != nil {
			t.Fatal(err)
		}
		status, body := send(t, a.method, base+a.path, a.body, identity.Header, string(id), "Content-Type", "application/json")
		if status != a.status {
			t.Errorf("%s: %s %s: status %d %s, want %d", a.id, a.method, a.path, status, body, a.status)
		}
		for _, text := range a.want {
			if absent, not := strings.CutPrefix(text, "!"); strings.Contains(body, absent) == not {
				t.Errorf("%s: %s %s: got %s\nwant %q", a.id, a.method, a.path, body, text)
			}
		}
	}
}

// colours makes two tenants with the same names in both, and an endpoint each.
func colours(t *testing.T, base string) {
	t.Helper()
	for i, tenant := range []string{"blue", "red"} {
		host := []string{"host1", "host2"}[i]
		play(t, base, []exchange{
			{"POST", "/api/v1/tenants/" + tenant + "/", `{"tenantName":"` + tenant + `"}`, 200, "~" + tenant},
			{"POST", "/api/v1/networks/" + tenant + ":web/", `{"tenantName":"` + tenant + `","networkName":"web","encap":"vxlan","subnet":"10.1.1.0/24"}`, 200, "~" + tenant},
			{
				"POST", "/api/v1/serviceLBs/" + tenant + ":lb/",
				`{"tenantName":"` + tenant + `","serviceName":"lb","networkName":"web","ipAddress":"10.1.1.99","selectors":["app=x"],"ports":["80:80:TCP"]}`, 200, "~" + tenant,
			},
			{
				"POST", "/plugin/createEndpoint",
				`{"TenantName":"` + tenant + `","NetworkName":"web","EndpointID":"` + tenant + `-c","ConfigEP":{"Container":"` + tenant + `-c","Host":"` + host + `"}}`, 200, "~" + host,
			},
		})
	}
	play(t, base, []exchange{{"POST", "/api/v1/Bgps/host1/", `{"hostname":"host1","routerip":"50.1.1.2/24","as":"65002","neighbor":"50.1.1.200","neighbor-as":"500"}`, 200, "~host1"}})
}

// TestRoles: who has a role in a tenant sees and changes what belongs to it, and nothing
// else, also not by what errors say.
func TestRoles(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	colours(t, base)
	newNet := func(tenant, more string) string {
		return `{"tenantName":"` + tenant + `","networkName":"db","encap":"vxlan","subnet":"10.2.1.0/24"` + more + `}`
	}
	ask(t, base, []asked{
		// Lists, objects, and what only a search finds.
		{viewer, "GET", "/api/v1/networks/", "", 200, []string{"blue:web", "red:web"}},
		{blueOps, "GET", "/api/v1/networks/", "", 200, []string{"blue:web", "!red"}},
		{blueViewer, "GET", "/api/v1/tenants/", "", 200, []string{"blue", "!red", "!default"}},
		{blueOps, "GET", "/api/v1/networks/blue:web/", "", 200, []string{"blue:web"}},
		{blueOps, "GET", "/api/v1/networks/red:web/", "", 403, []string{"user jane may not read networks of tenant red"}},
		{blueOps, "GET", "/api/v1/networks/red:no-such/", "", 403, []string{"user jane may not read networks of tenant red"}},
		{blueOps, "GET", "/api/v1/inspect/networks/red:web/", "", 403, nil},
		{blueOps, "GET", "/api/v1/inspect/endpoints/blue-c/", "", 200, []string{"blue"}},
		{blueOps, "GET", "/api/v1/inspect/endpoints/red-c/", "", 500, []string{"endpoint not found"}},
		{blueOps, "GET", "/api/v1/inspect/endpoints/no-such/", "", 500, []string{"endpoint not found"}},
		{blueOps, "GET", "/api/v1/inspect/endpoints/-c/", "", 200, []string{"blue-c", "!red"}},
		{blueOps, "GET", "/services", "", 200, []string{"blue", "!red"}},
		{blueOps, "GET", "/service/lb:red", "", 500, []string{"service lb:red not found"}},
		{blueOps, "GET", "/service/no:red", "", 500, []string{"service no:red not found"}},
		{blueOps, "GET", "/api/v1/trace/?from=red-c&to=10.1.1.1", "", 500, []string{"no endpoint"}},
		{blueOps, "GET", "/api/v1/trace/?from=10.1.1.1&to=10.1.1.99&tenant=red", "", 500, []string{"no endpoint has the address 10.1.1.1"}},
		{blueOps, "GET", "/api/v1/cluster/", "", 403, []string{"role viewer of all tenants is needed"}},
		{blueOps, "GET", "/debug/ofnet", "", 403, nil},
		{blueOps, "GET", "/api/v1/cluster/applied/", "", 200, nil},
		{blueOps, "GET", "/api/v1/openapi.json", "", 200, nil},

		// What has no tenant.
		{blueOps, "GET", "/api/v1/Bgps/", "", 403, nil},
		{blueOps, "GET", "/api/v1/Bgps/host1/", "", 403, nil},
		{blueOps, "GET", "/api/v1/aciGws/", "", 403, nil},
		{blueOps, "GET", "/api/v1/globals/global/", "", 200, []string{"global"}},
		{blueOps, "GET", "/api/v1/inspect/globals/global/", "", 200, []string{"global"}},
		{blueOps, "PUT", "/api/v1/globals/global/", `{"name":"global"}`, 403, []string{"role admin is needed"}},
		{viewer, "GET", "/api/v1/Bgps/", "", 200, []string{"host1"}},
		// Changes: the key and the body must name the tenant.
		{blueOps, "POST", "/api/v1/networks/red:db/", newNet("blue", ""), 403, []string{"networks of tenant red"}},
		{blueOps, "POST", "/api/v1/networks/blue:db/", newNet("red", ""), 403, []string{"the body tenant"}},
		{blueOps, "POST", "/api/v1/networks/blue:db/", newNet("blue", `,"nwType":"infra"`), 403, []string{"user jane may not change infra network blue:db: role admin is needed"}},
		{blueOps, "POST", "/api/v1/networks/blue:db/", newNet("blue", ""), 200, []string{"blue:db"}},
		{blueViewer, "DELETE", "/api/v1/networks/blue:db/", "", 403, []string{"role ops of tenant blue is needed"}},
		{viewer, "DELETE", "/api/v1/networks/blue:db/", "", 403, nil},
		{blueOps, "DELETE", "/api/v1/networks/red:web/", "", 403, nil},
		{blueOps, "DELETE", "/api/v1/networks/blue:db/", "", 200, []string{"blue:db"}},
		{blueOps, "POST", "/api/v1/tenants/green/", `{"tenantName":"green"}`, 403, nil},
		{blueOps, "DELETE", "/api/v1/tenants/blue/", "", 403, nil},
		{blueOps, "POST", "/plugin/createEndpoint", "{}", 403, nil},
		{blueOps, "GET", "/nowhere", "", 403, nil},
		{unknown, "GET", "/api/v1/networks/", "", 400, []string{"log in first (netctl login)"}},
	})
}

// TestInfraNetworksAreAdmins: infra networks are, whatever their tenant.
func TestInfraNetworksAreAdmins(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{
		{"POST", "/api/v1/tenants/blue/", `{"tenantName":"blue"}`, 200, "~blue"},
		{"POST", "/api/v1/networks/blue:mgmt/", `{"tenantName":"blue","networkName":"mgmt","nwType":"infra","encap":"vlan","pktTag":10,"subnet":"10.9.1.0/24"}`, 200, "~infra"},
	})
	ask(t, base, []asked{{blueOps, "DELETE", "/api/v1/networks/blue:mgmt/", "", 403, []string{"may not delete infra network blue:mgmt"}}})
	play(t, base, []exchange{{"DELETE", "/api/v1/networks/blue:mgmt/", "", 200, `"blue:mgmt"`}})
}

// TestHosts: the certificate of a host is good for the endpoints of that host.
func TestHosts(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	colours(t, base)
	create := func(container, host string) string {
		return `{"TenantName":"red","NetworkName":"web","EndpointID":"` + container + `","ConfigEP":{"Container":"` + container + `","Host":"` + host + `"}}`
	}
	const red = `{"TenantName":"red","NetworkName":"web","EndpointID":"red-c"}`
	const died = `{"ContainerID":"red-id","Event":"die"}`
	ask(t, base, []asked{
		{onHost1, "POST", masterapi.PathCreateEndpoint, create("c1", "host2"), 403, []string{`host host1 may not create endpoint web.red-c1: it is on host "host2"`}},
		{onHost1, "POST", masterapi.PathCreateEndpoint, create("red-c", "host1"), 403, []string{"may not read endpoint", "!10.1.1"}},
		{onHost1, "POST", masterapi.PathCreateEndpoint, create("c1", "host1"), 200, []string{"host1"}},
		{onHost1, "POST", masterapi.PathDeleteEndpoint, red, 403, []string{`may not delete endpoint web.red-red-c: it is on host "host2"`}},
		{onHost2, "POST", masterapi.PathUpdateEndpoint, `{"Tenant":"red","Network":"web","EndpointID":"red-c","ContainerID":"red-id","Event":"start","Labels":{"app":"x"}}`, 200, nil},
		{onHost1, "POST", masterapi.PathUpdateEndpoint, died, 403, []string{"may not change endpoint"}},
		{onHost1, "POST", masterapi.PathAllocAddress, `{"NetworkID":"web.red","Host":"host2"}`, 403, []string{"may not reserve"}},
		{onHost1, "POST", masterapi.PathAllocAddress, `{"NetworkID":"web.red"}`, 403, nil},
		{onHost1, "POST", masterapi.PathAllocAddress, `{"NetworkID":"web.red","Host":"host1","Reservation":"r"}`, 200, nil},
		{onHost1, "POST", masterapi.PathReleaseAddress, `{"NetworkID":"web.red","IPv4Address":"10.1.1.3","Host":"host2"}`, 403, nil},
		{onHost1, "GET", "/api/v1/networks/", "", 403, nil},
		{onHost1, "DELETE", "/api/v1/networks/red:web/", "", 403, nil},
		{onHost2, "POST", masterapi.PathDeleteEndpoint, red, 200, nil},
	})
}

// TestTraceEnds: a packet that comes to an endpoint of another tenant is not told of.
func TestTraceEnds(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(traceapi.Hop{Host: "host1", Ends: []traceapi.End{{Kind: traceapi.Delivered, Endpoint: "web.red-red-c", Words: "delivered to web.red-red-c"}}})
	})
	base := apitest.Start(t, store, cfg)
	colours(t, base)
	register(t, store, "netplugin", "127.0.0.1", "host1")
	const path = "/api/v1/trace/?from=blue-c&to=10.7.7.7"
	ask(t, base, []asked{
		{viewer, "GET", path, "", 200, []string{"red"}},
		{blueOps, "GET", path, "", 403, []string{"an endpoint of another tenant", "!red"}},
	})
}
