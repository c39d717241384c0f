package api_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

func TestCleanup(t *testing.T) {
	store := memory.New()
	var mu sync.Mutex
	var told []string
	cfg := apitest.Config(apitest.Log(t))
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id, ok := strings.CutPrefix(r.URL.Path, "/debug/reclaimEndpoint/")
		if !ok || r.Method != http.MethodDelete {
			t.Errorf("the agent is asked for %s %s", r.Method, r.URL.Path)
		}
		told = append(told, id)
		switch id {
		case "n1.default-unknown":
			http.NotFound(w, r)
		case "n1.default-stuck":
			http.Error(w, "cannot remove the port", http.StatusInternalServerError)
		}
	})
	base := apitest.Start(t, store, cfg)
	register(t, store, "netplugin", "127.0.0.1", "h1")
	create := func(tenant, network, group, name, host string) exchange {
		return exchange{"POST", "/plugin/createEndpoint", `{"TenantName":"` + tenant + `","NetworkName":"` + network + `","ConfigEP":{"Container":"` + name +
			`","Host":"` + host + `","ServiceName":"` + group + `"}}`, 200, `~` + name}
	}
	clean := func(path string, status int, want string) exchange {
		return exchange{"DELETE", "/debug/epcleanup/tenant/" + path, "", status, want}
	}
	left := func() []string {
		t.Helper()
		kvs, _, err := store.List(t.Context(), state.EndpointRoot)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, kv := range kvs {
			ids = append(ids, strings.TrimPrefix(kv.Key, state.EndpointRoot))
		}
		return ids
	}
	play(t, base, []exchange{
		{"POST", tenantPath + "red/", `{"tenantName":"red"}`, 200, `~red`},
		network("n1", "10.1.1.0/24"), network("n2", "10.2.1.0/24"),
		{"POST", networkPath + "red:n1/", `{"tenantName":"red","networkName":"n1","encap":"vxlan","subnet":"10.1.1.0/24"}`, 200, `~red:n1`},
		group("web", ""),
		{"POST", groupPath + "red:web/", `{"tenantName":"red","groupName":"web","networkName":"n1"}`, 200, `~red:web`},
		create("default", "n1", "web", "w1", "h1"), create("red", "n1", "web", "w2", "h1"),
		create("default", "n1", "", "a1", "h1"), create("default", "n1", "", "unknown", "h1"),
		create("default", "n2", "", "a2", "h1"), create("red", "n1", "", "a3", "h1"),
		clean("default/group/web", 200, `"cleaned up 1 endpoints of group web"`),
		clean("default/ep/a", 200, `"cleaned up 2 endpoints of ep a"`),
		clean("default/ep/nobody/", 200, `"cleaned up 0 endpoints of ep nobody"`),
		clean("default/pod/a", 500, `unknown category "pod": expected net, group or ep`),
	})
	if diff := cmp.Diff([]string{"n1.default-unknown", "n1.red-a3", "n1.red-w2"}, left()); diff != "" {
		t.Errorf("endpoints left (-want +got):\n%s", diff)
	}
	play(t, base, []exchange{
		create("default", "n1", "", "stuck", "h1"), create("default", "n1", "", "lost", "h9"), create("default", "n1", "", "other", "h1"),
		clean("default/net/n1", 500, `~reclaim endpoint n1.default-stuck on host h1: cannot remove the port`),
	})
	if diff := cmp.Diff([]string{"n1.red-a3", "n1.red-w2"}, left()); diff != "" {
		t.Errorf("endpoints left after failures (-want +got):\n%s", diff)
	}
	play(t, base, []exchange{
		create("default", "n1", "", "lost", "h9"),
		clean("default/net/n1", 500, `~host not found: no agent of host "h9" is registered`),
		remove(groupPath, "default:web"), remove(networkPath, "default:n1"),
	})
	slices.Sort(told)
	want := []string{"n1.default-a1", "n1.default-other", "n1.default-stuck", "n1.default-unknown", "n1.default-w1", "n2.default-a2"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("agents were told of (-want +got):\n%s", diff)
	}
}
