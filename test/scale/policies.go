package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/k8spolicy"
	"github.com/contiv/netplugin/ofnet"
)

// policyRows are the lines of the table about NetworkPolicies.
var policyRows = []struct{ key, text, wanted string }{
	{"sets", "sets of what pods may", ""},
	{"flows", "flows of one agent because of policies", "≤ 10,000"},
	{"all", "all are compiled and sent", ""},
	{"address", "one pod gets another address → compiled and sent, p50 / p99", "≤ 50 ms"},
	{"labels", "one pod gets other labels → compiled and sent, p50 / p99", "≤ 50 ms"},
}

// podsHere is how many pods are on the host that is measured.
const podsHere = 100

// policed are NetworkPolicies on one host, as its agent has them.
type policed struct {
	*bridges
	cluster *k8spolicy.ClusterState
	here    map[string]k8spolicy.Key // by endpoint id
	last    k8spolicy.Result
}

// measurePolicies measures what the NetworkPolicies of a cluster cost one agent.
func measurePolicies(ctx context.Context, pods, policies, changes int) (figures, error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	p := &policed{bridges: newBridges(hostName(1), hostAddress(1), true, log), cluster: k8spolicy.NewClusterState(), here: map[string]k8spolicy.Key{}}
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	defer func() { stop(); _ = g.Wait() }()
	g.Go(func() error { return p.Run(ctx) })

	w := workload{rand.New(rand.NewPCG(3, 3))}
	all, err := p.fill(w, pods, policies)
	if err != nil {
		return nil, err
	}
	if err := p.Flushed(ctx); err != nil {
		return nil, err
	}
	before, began := p.Summary().Flows, time.Now()
	if err := p.declare(ctx); err != nil {
		return nil, err
	}
	f := figures{"all": short(time.Since(began)), "flows": fmt.Sprint(p.Summary().Flows - before), "sets": fmt.Sprint(len(p.last.Sets))}
	for key, change := range map[string]func(pod *corev1.Pod, i int){
		"address": func(pod *corev1.Pod, i int) { pod.Status.PodIPs = []corev1.PodIP{{IP: podAddress(pods + i).String()}} },
		"labels":  func(pod *corev1.Pod, _ int) { pod.Labels = w.labels() },
	} {
		var took []time.Duration
		for i := range changes {
			pod := pick(w, all...)
			began := time.Now()
			change(pod, i)
			p.cluster.SetPod(k8spolicy.ParsePod(pod))
			if err := p.declare(ctx); err != nil {
				return nil, err
			}
			took = append(took, time.Since(began))
		}
		f[key] = quantiles(took)
	}
	return f, nil
}

// fill makes the cluster, and the endpoints of the pods that are here.
func (p *policed) fill(w workload, pods, policies int) (all []*corev1.Pod, err error) {
	for _, name := range []string{"x", "y", "z"} {
		p.cluster.SetNamespace(k8spolicy.ParseNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.labels()}}))
	}
	n := drivers.Network{
		Network: ofnet.Network{ID: "net.default", Encap: ofnet.VXLAN, Tag: 1, VNI: 10001, Subnet4: netip.MustParsePrefix("10.2.0.0/16"), Gateway4: netip.MustParseAddr("10.2.255.254")},
		Tenant:  "default", Name: "net",
	}
	p.Apply(drivers.Global{FwdMode: "routing", ARPMode: "proxy", PvtSubnet: netip.MustParsePrefix("172.19.0.0/16")})
	p.Apply(n)
	for i := range pods {
		pod := w.pod(i, i)
		all = append(all, pod)
		p.cluster.SetPod(k8spolicy.ParsePod(pod))
		e := drivers.Endpoint{ID: pod.Name, Network: n, MAC: ofnet.MAC{2, 2, 10, 2, byte(i >> 8), byte(i)}, IPv4: podAddress(i), Local: i < podsHere}
		if e.Local {
			p.here[e.ID] = k8spolicy.Key{Namespace: pod.Namespace, Name: pod.Name}
		} else {
			e.VTEP = hostAddress(2)
		}
		p.Apply(e)
	}
	for i := range policies {
		policy, err := k8spolicy.ParsePolicy(w.policy(i))
		if err != nil {
			return nil, err
		}
		p.cluster.SetPolicy(policy)
	}
	p.Synced(drivers.SourceStore)
	return all, nil
}

// declare compiles what pods may, declares what has changed, and waits until it is sent.
func (p *policed) declare(ctx context.Context) error {
	now := p.cluster.Compile(p.here)
	now.Declare(p, p.last)
	p.last = now
	return p.Flushed(ctx)
}
