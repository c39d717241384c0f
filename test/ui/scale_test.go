package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/contivmodel/openapi"
	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/state/clusterapi"
)

// The cluster of BenchmarkPage.
const (
	manyHosts     = 1000
	manyEndpoints = 10_000
	manyGroups    = 1000
)

// pause is how long is waited for an update to be drawn; the page gathers what happens in 100 ms.
const pause = 250 * time.Millisecond

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// simulated is the API of a large cluster, as far as the page asks it. A string sent to changes
// becomes the name of a new network.
func simulated(tb testing.TB, changes <-chan string) http.Handler {
	page, err := ui.New()
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(path string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			tb.Fatal(err)
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	}
	cluster := clusterapi.Cluster{Revision: 9, Settings: 1}
	for i := range manyHosts {
		cluster.Hosts = append(cluster.Hosts, clusterapi.Host{Host: fmt.Sprintf("host%04d", i), State: clusterapi.Up, Revision: 9, Settings: 1, Flows: 5000 + i, Endpoints: 10, VTEP: "192.168.0.1", Reasons: []string{}})
	}
	var endpoints []map[string]any
	for i := range manyEndpoints {
		endpoints = append(endpoints, map[string]any{
			"endpointID": fmt.Sprintf("c%05d", i), "containerName": fmt.Sprintf("web-%05d", i), "endpointGroupKey": fmt.Sprintf("g%03d:big", i%manyGroups),
			"homingHost": fmt.Sprintf("host%04d", i%manyHosts), "ipAddress": []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, "network": "net.big",
		})
	}
	document, err := openapi.JSON()
	if err != nil {
		tb.Fatal(err)
	}
	answer("/api/v1/openapi.json", json.RawMessage(document))
	answer("/api/v1/cluster/{$}", cluster)
	answer("/api/v1/cluster/applied/", clusterapi.Applied{Hosts: manyHosts, Missing: []clusterapi.Missing{}})
	answer("/api/v1/tenants/", []map[string]string{{"tenantName": "big"}})
	answer("/api/v1/inspect/tenants/big/", map[string]any{"Oper": map[string]any{"endpoints": endpoints}})
	answer("/healthz", map[string]string{"status": "ok"})
	mux.Handle("/ui/", page)
	mux.HandleFunc("GET /api/v1/watch", func(w http.ResponseWriter, r *http.Request) {
		objects := []map[string]any{{"kind": "tenant", "key": "big", "object": map[string]any{"tenantName": "big"}}}
		for i := range manyGroups {
			name := fmt.Sprintf("g%03d", i)
			objects = append(objects, map[string]any{"kind": "endpointGroup", "key": "big:" + name, "object": map[string]any{"tenantName": "big", "groupName": name, "networkName": "net"}})
		}
		notice(w, "reset", objects)
		for {
			select {
			case name := <-changes:
				notice(w, "added", []map[string]any{{"kind": "endpointGroup", "key": "big:" + name, "object": map[string]any{"tenantName": "big", "groupName": name, "networkName": "net"}}})
			case <-r.Context().Done():
				return
			}
		}
	})
	return mux
}

func notice(w http.ResponseWriter, event string, objects []map[string]any) {
	text, err := json.Marshal(map[string]any{"event": event, "objects": objects, "revision": 1})
	if err == nil {
		fmt.Fprintf(w, "id: 1\ndata: %s\n\n", text)
		_ = http.NewResponseController(w).Flush()
	}
}

// BenchmarkPage measures how long the page does not answer its user when an object changes in a
// cluster of 1,000 hosts, 10,000 endpoints and 1,000 groups: the longest time between two turns of its
// event loop, in milliseconds, median of all updates, and the same while nothing changes, which is what
// the machine does. At most 100 ms is wanted.
func BenchmarkPage(b *testing.B) {
	changes := make(chan string)
	server := httptest.NewServer(simulated(b, changes))
	b.Cleanup(server.CloseClientConnections)
	p := browse(b, server.URL)
	for _, v := range []view{{"/", "Overview"}, {"/objects/endpointGroup", "Groups"}, {"/objects/endpoints", "Endpoints"}, {"/hosts", "Hosts"}, {"/topology?tenant=big", "Topology"}, {"/policies?tenant=big", "Policies"}} {
		b.Run(strings.ReplaceAll(v.title, " ", ""), func(b *testing.B) {
			p := tab{b, p.ctx, p.base}
			p.open(v.hash).sees("h1", v.title)
			p.open("/objects/endpoints").sees(".table", "web-00000")
			p.open(v.hash).sees("h1", v.title)
			time.Sleep(time.Second) // the view has been drawn
			eval[any](p, `window.longest = 0; window.last = performance.now(); window.turns = new MessageChannel(); turns.port1.onmessage = () => {
				const now = performance.now(); longest = Math.max(longest, now - last); last = now; setTimeout(() => turns.port2.postMessage(0)); }; turns.port2.postMessage(0)`)
			var updates, idle []float64
			longest := func(of *[]float64) {
				*of = append(*of, eval[float64](p, `(() => { const l = longest; longest = 0; return l; })()`))
			}
			for i := 0; b.Loop(); i++ {
				longest(&[]float64{})
				time.Sleep(pause)
				longest(&idle)
				changes <- fmt.Sprintf("new-%s-%d", strings.ToLower(v.title), i)
				time.Sleep(pause)
				longest(&updates)
			}
			eval[any](p, `turns.port1.close()`)
			b.ReportMetric(median(updates), "ms/update")
			b.ReportMetric(median(idle), "ms/idle")
			b.ReportMetric(0, "ns/op")
		})
	}
}
