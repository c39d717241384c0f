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

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
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
// same flows, which only parses, sends and waits. How many times more flows and how much
// longer a change is if sets name addresses instead of classes of them.
func BenchmarkProgram(b *testing.B) {
	br := startBridge(b)
	g := generator{rand.New(rand.NewPCG(3, 3))}
	c, w, pods := large(b, g)
	program := func(as func(Result) Result) time.Duration {
		q := pick(g, c.pods...)
		q.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.3.%d.%d", g.IntN(256), g.IntN(256))}}
		began := time.Now()
		w.SetPod(ParsePod(q))
		br.declare(as(w.Compile(pods)))
		br.flush()
		return time.Since(began)
	}
	all := program(itself)
	flows := allowFlows(br)
	reference := addFlows(b, br.sw, flows)
	var changes, byAddress time.Duration
	for b.Loop() {
		changes += program(itself)
	}
	sets := len(br.last.Sets)
	program(Result.byAddress)
	more := len(allowFlows(br))
	const few = 5
	for range few {
		byAddress += program(Result.byAddress)
	}
	b.ReportMetric(float64(more)/float64(len(flows)), "x-flows-by-address")
	b.ReportMetric(byAddress.Seconds()/few/(changes.Seconds()/float64(b.N)), "x-change-by-address")
	b.ReportMetric(all.Seconds(), "s/all")
	b.ReportMetric(all.Seconds()/reference.Seconds(), "x-ovs-ofctl")
	b.ReportMetric(float64(len(flows)), "flows")
	b.ReportMetric(float64(sets), "sets")
}

func itself(r Result) Result { return r }

// byAddress says the same with the addresses of classes instead.
func (r Result) byAddress() Result {
	of := map[uint32][]netip.Prefix{}
	for at, class := range r.Peers {
		of[class] = append(of[class], netip.PrefixFrom(at.Addr, at.Addr.BitLen()))
	}
	out := Result{EndpointPolicies: r.EndpointPolicies, Sets: map[string]drivers.PolicyRuleSet{}}
	for id, s := range r.Sets {
		allows := make([]ofnet.Allow, len(s.Allows))
		for i, a := range s.Allows {
			peers := slices.Clone(a.Peers)
			for _, class := range a.Classes {
				peers = append(peers, of[class]...)
			}
			allows[i] = ofnet.Allow{Peers: sorted(peers), Ports: a.Ports, Name: a.Name}
		}
		s.Allows = allows
		out.Sets[id] = s
	}
	return out
}

// allowFlows are the flows of sets and of peers that a bridge has.
func allowFlows(br *bridge) []string {
	var tables []string
	for i, name := range br.p.Tables() {
		if strings.HasPrefix(name, "allow-") || strings.HasPrefix(name, "peer-") {
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
