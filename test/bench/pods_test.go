package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// plugin is a CNI plugin under measurement.
type plugin struct {
	name, path, conf string
}

func contiv(network string) plugin {
	return plugin{
		name: "contiv", path: "/opt/cni/bin/contivk8s",
		conf: fmt.Sprintf(`{"cniVersion":"1.0.0","name":"contiv-net","type":"contivk8s","contiv":{"network":%q}}`, network),
	}
}

// floor are the reference plugins bridge and host-local.
var floor = plugin{
	name: "floor", path: "/opt/cni/bin/bridge",
	conf: `{"cniVersion":"1.0.0","name":"floor","type":"bridge","bridge":"cni0","isGateway":true,` +
		`"ipam":{"type":"host-local","subnet":"10.22.0.0/16"}}`,
}

// call runs a plugin in the host and returns how long that took, from exec to exit.
func (p plugin) call(ctx context.Context, h *lab.Host, command, container string) (time.Duration, error) {
	var out bytes.Buffer
	began := time.Now()
	err := h.Run(ctx, lab.Stdio{In: strings.NewReader(p.conf), Out: &out, Err: &out, Env: []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/run/netns/" + container,
		"CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin", "CNI_ARGS=IgnoreUnknown=1",
	}}, p.path)
	took := time.Since(began)
	if err != nil {
		return took, fmt.Errorf("%s %s of %s: %w: %s", p.name, command, container, err, out.String())
	}
	return took, nil
}

// cycle makes a container, attaches it, detaches it and removes it, and returns how
// long attaching took.
func (p plugin) cycle(ctx context.Context, h *lab.Host, container string) (time.Duration, error) {
	if _, err := h.Output(ctx, "ip", "netns", "add", container); err != nil {
		return 0, err
	}
	took, err := p.call(ctx, h, "ADD", container)
	if err != nil {
		return took, err
	}
	if _, err := p.call(ctx, h, "DEL", container); err != nil {
		return took, err
	}
	_, err = h.Output(ctx, "ip", "netns", "del", container)
	return took, err
}

func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func upWithNetwork(b *testing.B, hosts int) *lab.Lab {
	b.Helper()
	return upNetwork(b, lab.Config{Hosts: hosts})
}

// upNetwork brings up a lab with the network bench.
func upNetwork(b *testing.B, cfg lab.Config) *lab.Lab {
	b.Helper()
	l := labtest.Up(b, cfg)
	if _, err := l.NetctlOutput(b.Context(), "net", "create", "bench", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254"); err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkPodAdd: one pod at a time.
func BenchmarkPodAdd(b *testing.B) {
	h := upWithNetwork(b, 1).Hosts()[0]
	times := map[string][]time.Duration{}
	for b.Loop() {
		for n := range 200 {
			for _, p := range []plugin{contiv("bench"), floor} {
				took, err := p.cycle(b.Context(), h, fmt.Sprintf("%s-%d", p.name, n))
				if err != nil {
					b.Fatal(err)
				}
				times[p.name] = append(times[p.name], took)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		ours, theirs := quantile(times["contiv"], q.at), quantile(times["floor"], q.at)
		b.ReportMetric(milliseconds(ours), q.name+"-ms")
		b.ReportMetric(milliseconds(theirs), q.name+"-floor-ms")
		b.ReportMetric(float64(ours)/float64(theirs), q.name+"-ratio")
	}
}

// BenchmarkPodAddParallel: eight pods at a time.
func BenchmarkPodAddParallel(b *testing.B) {
	const clients, each = 8, 20
	h := upWithNetwork(b, 1).Hosts()[0]
	rates := map[string][]float64{}
	round := 0
	for b.Loop() {
		round++
		for _, p := range []plugin{contiv("bench"), floor} {
			rate, err := addParallel(b.Context(), h, p, round, clients, each)
			if err != nil {
				b.Fatal(err)
			}
			rates[p.name] = append(rates[p.name], rate)
		}
	}
	b.ReportMetric(0, "ns/op")
	ours, theirs := slices.Max(rates["contiv"]), slices.Max(rates["floor"])
	b.ReportMetric(ours, "pods/s")
	b.ReportMetric(theirs, "pods-floor/s")
	b.ReportMetric(ours/theirs, "ratio")
}

// addParallel attaches clients × each containers, clients at a time, and returns how
// many it attached in a second.
func addParallel(ctx context.Context, h *lab.Host, p plugin, round, clients, each int) (float64, error) {
	name := func(client, n int) string { return fmt.Sprintf("%s-%d-%d-%d", p.name, round, client, n) }
	all := func(f func(ctx context.Context, container string) error) error {
		g, ctx := errgroup.WithContext(ctx)
		for client := range clients {
			g.Go(func() error {
				for n := range each {
					if err := f(ctx, name(client, n)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	}
	netns := func(verb string) func(context.Context, string) error {
		return func(ctx context.Context, container string) error {
			_, err := h.Output(ctx, "ip", "netns", verb, container)
			return err
		}
	}
	call := func(command string) func(context.Context, string) error {
		return func(ctx context.Context, container string) error {
			_, err := p.call(ctx, h, command, container)
			return err
		}
	}
	if err := all(netns("add")); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := all(call("ADD")); err != nil {
		return 0, err
	}
	rate := float64(clients*each) / time.Since(began).Seconds()
	if err := all(call("DEL")); err != nil {
		return 0, err
	}
	return rate, all(netns("del"))
}
