package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// api are a host's daemons over connections that stay open.
type api struct{ http *http.Client }

func apiOf(h *lab.Host) api {
	return api{&http.Client{Transport: &http.Transport{DialContext: h.Dial, MaxIdleConnsPerHost: 64}}}
}

// each has n things done, clients at a time, and returns how many were done in a second.
func each(ctx context.Context, n, clients int, do func(ctx context.Context, i int) error) (float64, error) {
	g, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for k := range clients {
		g.Go(func() error {
			for i := k; i < n; i += clients {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(n) / time.Since(began).Seconds(), err
}

// createEndpoints has endpoints of the given numbers created, clients at a time, and
// returns how many were created in a second.
func (a api) createEndpoints(ctx context.Context, host string, from, n, clients int) (float64, error) {
	return each(ctx, n, clients, func(ctx context.Context, i int) error {
		return a.createEndpoint(ctx, "bench", host, fmt.Sprintf("c%d", from+i))
	})
}

func (a api) createEndpoint(ctx context.Context, network, host, container string) error {
	return a.post(ctx, masterapi.PathCreateEndpoint, masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: network, EndpointID: container,
		ConfigEP: masterapi.ConfigEP{Container: container, Host: host},
	})
}

// post makes a request of the host's netmaster.
func (a api) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:9999"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", path, text, answer)
	}
	return err
}

// metric reads one sample of a daemon's /metrics; series is the name with its labels.
func (a api) metric(ctx context.Context, port int, series string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
	if err != nil {
		return 0, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			var v float64
			_, err := fmt.Sscan(rest, &v)
			return v, err
		}
	}
	return 0, fmt.Errorf("port %d has no metric %s", port, series)
}

// await polls until a metric satisfies ok and returns how long that took.
func (a api) await(ctx context.Context, port int, series string, ok func(float64) bool) (time.Duration, error) {
	began := time.Now()
	for {
		v, err := a.metric(ctx, port, series)
		if err == nil && ok(v) {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s is %v: %w", series, v, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

const megabyte = 1 << 20

// BenchmarkRemoteEndpoints: an agent that knows 10,000 endpoints of another host; what
// it weighs, and how long a switch that has lost all flows takes to get them back.
func BenchmarkRemoteEndpoints(b *testing.B) {
	const endpoints = 10_000
	l := labtest.Up(b, lab.Config{Hosts: 2})
	if _, err := l.NetctlOutput(b.Context(), "net", "create", "bench", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254", "--subnetv6=2001:db8::/64"); err != nil {
		b.Fatal(err)
	}
	h := l.Hosts()[0]
	a := apiOf(h)
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	if _, err := a.createEndpoints(ctx, "host2", 0, endpoints, 16); err != nil {
		b.Fatal(err)
	}
	const bridge = `{bridge="contivVxlanBridge"}`
	enough := func(v float64) bool { return v >= 4*endpoints } // per family a route and an answer to ARP or ND
	if _, err := a.await(ctx, 9090, "contiv_ovs_flows_actual"+bridge, enough); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		time.Sleep(5 * time.Second) // the agent gives memory back when a burst is over
		rss, err := a.metric(ctx, 9090, "process_resident_memory_bytes")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rss/megabyte, "agent-MiB")
		heap, err := a.metric(ctx, 9090, "go_memstats_heap_inuse_bytes")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(heap/megabyte, "agent-heap-MiB")
		flows, err := a.metric(ctx, 9090, "contiv_ovs_flows_actual"+bridge)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(flows, "flows")

		// An agent that restarts and finds everything in place.
		if err := h.RestartDaemon(ctx, "netplugin", syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		if _, err := a.await(ctx, 9090, "contiv_ovs_flows_actual"+bridge, enough); err != nil {
			b.Fatal(err)
		}
		sent, err := a.metric(ctx, 9090, "contiv_ovs_flow_mods_total"+bridge)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(sent, "flow-mods-at-restart")

		// A switch that restarts and has nothing.
		connects, err := a.metric(ctx, 9090, "contiv_ovs_channel_connects_total"+bridge)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.RestartDaemon(ctx, "ovs", syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		if _, err := a.await(ctx, 9090, "contiv_ovs_channel_connects_total"+bridge, func(v float64) bool { return v > connects }); err != nil {
			b.Fatal(err)
		}
		took, err := a.await(ctx, 9090, "contiv_ovs_flows_actual"+bridge, enough)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "s-from-connect")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMasterMemory: what netmaster weighs with 50,000 endpoints, its store being
// another process.
func BenchmarkMasterMemory(b *testing.B) {
	l := labtest.Up(b, lab.Config{Hosts: 1, Store: lab.StoreEtcd})
	if _, err := l.NetctlOutput(b.Context(), "net", "create", "bench", "--subnet=20.0.0.0/12", "--gateway=20.15.255.254"); err != nil {
		b.Fatal(err)
	}
	a := apiOf(l.Hosts()[0])
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for b.Loop() {
		rate, err := a.createEndpoints(ctx, "elsewhere", 0, 50_000, 16)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rate, "endpoints/s")
		rss, err := a.metric(ctx, 9999, "process_resident_memory_bytes")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rss/megabyte, "master-MiB")
		agent, err := a.metric(ctx, 9090, "process_resident_memory_bytes")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(agent/megabyte, "agent-MiB")
	}
	b.ReportMetric(0, "ns/op")
}
