package k8spolicy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// large is a cluster of 1,000 pods and 100 policies, with 100 of the pods here.
func large(tb testing.TB, g generator) (cluster, *ClusterState, map[string]Key) {
	c := g.cluster(1, 100)
	c.pods = nil
	for i := range 1000 {
		p := g.pod(pick(g, "x", "y", "z"), i)
		p.Status.PodIPs = []corev1.PodIP{{IP: netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}).String()}}
		c.pods = append(c.pods, p)
	}
	w, err := c.state()
	if err != nil {
		tb.Fatal(err)
	}
	pods := map[string]Key{}
	for _, p := range c.pods[:100] {
		pods[p.Name] = Key{p.Namespace, p.Name}
	}
	return c, w, pods
}

// What compiling costs when a pod changes.
func BenchmarkCompile(b *testing.B) {
	g := generator{rand.New(rand.NewPCG(3, 3))}
	c, w, pods := large(b, g)
	w.Compile(pods)
	for b.Loop() {
		p := pick(g, c.pods...)
		p.Labels = g.labels()
		w.SetPod(ParsePod(p))
		w.Compile(pods)
	}
}

// How long a real switch takes to have all sets, and then what a pod changes in them,
// from the change on; and how much longer the former is than ovs-ofctl takes for the
// same flows, which only parses, sends and waits.
func BenchmarkProgram(b *testing.B) {
	br := startBridge(b)
	g := generator{rand.New(rand.NewPCG(3, 3))}
	c, w, pods := large(b, g)
	program := func() {
		br.declare(w.Compile(pods))
		br.flush()
	}
	began := time.Now()
	program()
	all := time.Since(began)
	flows := allowFlows(br)
	reference := addFlows(b, br.sw, flows)
	for b.Loop() {
		q := pick(g, c.pods...)
		q.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.3.%d.%d", g.IntN(256), g.IntN(256))}}
		w.SetPod(ParsePod(q))
		program()
	}
	b.ReportMetric(all.Seconds(), "s/all")
	b.ReportMetric(all.Seconds()/reference.Seconds(), "x-ovs-ofctl")
	b.ReportMetric(float64(len(flows)), "flows")
	b.ReportMetric(float64(len(br.last.Sets)), "sets")
}

// allowFlows are the flows of sets that a bridge has.
func allowFlows(br *bridge) []string {
	var tables []string
	for i, name := range br.p.Tables() {
		if strings.HasPrefix(name, "allow-") {
			tables = append(tables, fmt.Sprintf("table=%d,", i))
		}
	}
	return slices.DeleteFunc(br.sw.DumpFlows("br"), func(flow string) bool {
		return !slices.ContainsFunc(tables, func(t string) bool { return strings.Contains(flow, t) })
	})
}

// addFlows has ovs-ofctl add flows to a bridge of its own, in one bundle.
func addFlows(b *testing.B, sw *ovstest.Switch, flows []string) time.Duration {
	b.Helper()
	sw.AddBridge("reference")
	file := filepath.Join(b.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(flows, "\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	sw.Ofctl("add-flows", "reference", file, "--bundle")
	took := time.Since(began)
	sw.Vsctl("del-br", "reference")
	return took
}
