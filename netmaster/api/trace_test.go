package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/traceapi"
)

// The agent of the endpoint's host is asked; one that cannot answer is named.
func TestTrace(t *testing.T) {
	store := memory.New()
	cfg := apitest.Config(apitest.Log(t))
	var asked traceapi.HopRequest
	answer := func(w http.ResponseWriter) {
		_ = json.NewEncoder(w).Encode(traceapi.Hop{Host: "h1", Ends: []traceapi.End{{Kind: traceapi.Dropped, Words: "nobody is there"}}})
	}
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Method != http.MethodPost || r.URL.Path != traceapi.PathAgent {
			t.Errorf("the agent is asked for %s %s: %v", r.Method, r.URL.Path, err)
		}
		answer(w)
	})
	base := apitest.Start(t, store, cfg)
	const path = "/api/v1/trace/?from=c1&to=10.1.1.9"
	play(t, base, []exchange{
		{"POST", "/api/v1/networks/default:net/", `{"tenantName":"default","networkName":"net","subnet":"10.1.1.0/24","encap":"vxlan"}`, 200, "~net"},
		{"POST", "/plugin/createEndpoint", `{"TenantName":"default","NetworkName":"net","ConfigEP":{"Container":"c1","Host":"h1"}}`, 200, "~c1"},
		{"GET", path, "", 500, `~ask host h1: host not found: no agent of host "h1" is registered`},
		{"GET", "/api/v1/trace/?from=c1&to=nobody", "", 500, `~to: no endpoint "nobody"`},
		{"GET", "/api/v1/trace?from=c1&to=10.1.1.9&port=0", "", 500, `~port "0": expected 1 to 65535`},
		{"GET", "/api/v1/trace?from=c1&to=10.1.1.9&family=x", "", 500, `~address family "x": expected 4 or 6`},
	})
	register(t, store, "netplugin", "127.0.0.1", "h1")
	play(t, base, []exchange{{"GET", path + "&port=80", "", 200, `~"verdict":"the packet is dropped on host h1: nobody is there"`}})
	if asked.Endpoint != "net.default-c1" || asked.Packet.Proto != "tcp" || asked.Packet.DstPort != 80 || asked.Packet.Dst.String() != "10.1.1.9" {
		t.Errorf("the agent was asked %+v", asked)
	}
	for _, c := range []struct {
		status     int
		text, want string
	}{
		{404, "404 page not found", "ask host h1: its netplugin cannot trace yet; upgrade it"},
		{404, "trace: endpoint e is not known on host h1", "ask host h1: trace: endpoint e is not known on host h1"},
		{503, "trace: no ovs-vswitchd answers", "ask host h1: trace: no ovs-vswitchd answers"},
		{200, "{}", "ask host h1: its netplugin's answer cannot be read"},
	} {
		answer = func(w http.ResponseWriter) { http.Error(w, c.text, c.status) }
		play(t, base, []exchange{{"GET", path, "", 500, "~" + c.want}})
	}
}
