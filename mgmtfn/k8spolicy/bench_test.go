package k8spolicy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// large is a cluster of 1,000 pods and 100 policies, with 100 of the pods here.
func large(tb testing.TB, g generator) (cluster, *World, map[string]Key) {
	c := g.cluster(1, 100)
	c.pods = nil
	for i := range 1000 {
		p := g.pod(pick(g, "x", "y", "z"), i)
		p.Status.PodIPs = []corev1.PodIP{{IP: netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}).String()}}
		c.pods = append(c.pods, p)
	}
	w, err := c.world()
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
// from the change on.
func BenchmarkProgram(b *testing.B) {
	sw := ovstest.Start(b)
	sw.AddBridge("br")
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := ofnet.NewSwitch(ofnet.SwitchConfig{Name: "br", Target: sw.Target("br"), Log: log})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	p, err := ofnet.NewPipeline(ofnet.Settings{Encap: ofnet.VXLAN, Routing: true, TunnelPort: tunnelPort, Round: 1, Guards: true})
	if err != nil {
		b.Fatal(err)
	}
	s.Set("fixed", p.Fixed())
	s.Complete()
	flushed := func() {
		if err := s.Flushed(ctx); err != nil {
			b.Fatal(err)
		}
	}
	flushed()
	g := generator{rand.New(rand.NewPCG(3, 3))}
	c, w, pods := large(b, g)
	numbers := map[string]uint32{}
	var last Result
	program := func() {
		now := w.Compile(pods)
		for id, set := range now.Sets {
			if old, ok := last.Sets[id]; ok && old.Equal(set) {
				continue
			}
			if numbers[id] == 0 {
				numbers[id] = ofnet.LowestAllowSet + uint32(len(numbers))
			}
			s.Set("allow/"+id, p.AllowSet(ofnet.AllowSet{ID: id, Number: numbers[id], Out: set.Out, Allows: set.Allows}))
		}
		for id := range last.Sets {
			if _, ok := now.Sets[id]; !ok {
				s.Remove("allow/" + id)
			}
		}
		last = now
		flushed()
	}
	began := time.Now()
	program()
	all := time.Since(began)
	for b.Loop() {
		q := pick(g, c.pods...)
		q.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.3.%d.%d", g.IntN(256), g.IntN(256))}}
		w.SetPod(ParsePod(q))
		program()
	}
	b.ReportMetric(all.Seconds(), "s/all")
	b.ReportMetric(float64(s.Status().Actual), "flows")
	b.ReportMetric(float64(len(last.Sets)), "sets")
}
