//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/contiv/netplugin/test/kubernetes/prober"
)

// randomPolicies applies random sets of policies, and expects that who reaches whom is what
// the evaluator of Cyclonus says. CONTIV_SEED repeats a run, CONTIV_LONG makes it longer.
func randomPolicies(p probed) {
	sets, seed := 6, rand.Uint64()
	if os.Getenv("CONTIV_LONG") != "" {
		sets = 60
	}
	if n, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = n
	}
	p.t.Logf("%d sets of policies; repeat them with %s=%d", sets, seedEnv, seed)
	g := policyGenerator{rand.New(rand.NewPCG(seed, 9)), p}
	all := p.questions(p.names()...)
	run := func(i int) {
		defer p.kubectl("delete", "networkpolicies", "--all", "-A")
		var policies []*networkingv1.NetworkPolicy
		var text strings.Builder
		for n := range 1 + g.IntN(5) {
			policy := g.policy(n)
			policies = append(policies, policy)
			manifest, err := json.Marshal(policy)
			if err != nil {
				p.t.Fatal(err)
			}
			fmt.Fprintf(&text, "%s\n---\n", manifest)
		}
		p.apply(text.String())
		opinion := matcher.BuildNetworkPolicies(false, policies)
		denied := 0
		allowed := func(q question) bool { return reaches(opinion, q, p.pods[q.from].v4, p.pods[q.from].v6) }
		p.checkIf(fmt.Sprintf("set %d of policies holds: %s", i, text.String()), all, allowed)
		for _, q := range all {
			if !allowed(q) {
				denied++
			}
		}
		p.t.Logf("set %d: %d of %d are denied", i, denied, len(all))
	}
	for i := range sets {
		run(i)
	}
}

// labelsOf are the labels of a pod of TestNetworkPolicies.
func labelsOf(pod string) map[string]string {
	_, name, _ := strings.Cut(pod, "/")
	labels := map[string]string{"pod": name}
	if tier := map[string]string{"a": "front", "b": "back"}[name]; tier != "" {
		labels["tier"] = tier
	}
	return labels
}

// reaches asks Cyclonus. It takes one name of a port; there may be several, each of which
// may allow. The addresses are those of who asks.
func reaches(policies *matcher.Policy, q question, addresses ...netip.Addr) bool {
	peer := func(pod string, addr netip.Addr) *matcher.TrafficPeer {
		namespace, _, _ := strings.Cut(pod, "/")
		return &matcher.TrafficPeer{IP: addr.String(), Internal: &matcher.InternalPeer{
			PodLabels: labelsOf(pod), Namespace: namespace, NamespaceLabels: map[string]string{"ns": namespace, corev1.LabelMetadataName: namespace},
		}}
	}
	source := addresses[0] // who asks is known by an address of the same family
	if q.target.To.Addr().Is6() {
		source = addresses[1]
	}
	traffic := matcher.Traffic{Source: peer(q.from, source), Destination: peer(q.to, q.target.To.Addr()), ResolvedPort: int(q.target.To.Port())}
	names := []string{""}
	switch q.target.Proto {
	case prober.TCP:
		traffic.Protocol = corev1.ProtocolTCP
		web := 80
		if strings.HasSuffix(q.to, "/c") {
			web = 81
		}
		if traffic.ResolvedPort == web {
			names = append(names, "web")
		}
		names = append(names, fmt.Sprint("tcp", traffic.ResolvedPort))
	case prober.UDP:
		traffic.Protocol = corev1.ProtocolUDP
		names = append(names, fmt.Sprint("udp", traffic.ResolvedPort))
	}
	allowed := func(ingress bool) bool {
		for _, name := range names {
			traffic.ResolvedPortName = name
			if policies.IsIngressOrEgressAllowed(&traffic, ingress).IsAllowed() {
				return true
			}
		}
		return false
	}
	return allowed(true) && allowed(false)
}

// policyGenerator makes policies for the pods of TestNetworkPolicies.
type policyGenerator struct {
	*rand.Rand
	probed
}

func one[T any](g policyGenerator, all ...T) T { return all[g.IntN(len(all))] }

func (g policyGenerator) selector(key string, values ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch g.IntN(4) {
	case 0:
		s.MatchLabels = map[string]string{key: one(g, values...)}
	case 1:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{one(g, values...), one(g, values...)}}}
	case 2:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: one(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}
	}
	return s
}

func (g policyGenerator) selectPods() *metav1.LabelSelector {
	if g.IntN(2) == 0 {
		return g.selector("pod", "a", "b", "c")
	}
	return g.selector("tier", "front", "back")
}

func (g policyGenerator) peers() (out []networkingv1.NetworkPolicyPeer) {
	for range g.IntN(3) {
		var p networkingv1.NetworkPolicyPeer
		switch g.IntN(4) {
		case 0:
			p.PodSelector = g.selectPods()
		case 1:
			p.NamespaceSelector = g.selector("ns", "x", "y", "z")
		case 2:
			p.PodSelector, p.NamespaceSelector = g.selectPods(), g.selector("ns", "x", "y", "z")
		case 3:
			pod := g.pods[one(g, g.names()...)]
			addr, wide := pod.v4, 28
			if g.IntN(2) == 0 {
				addr, wide = pod.v6, 124
			}
			block, _ := addr.Prefix(wide)
			p.IPBlock = &networkingv1.IPBlock{CIDR: block.String()}
			if g.IntN(2) == 0 {
				p.IPBlock.Except = []string{netip.PrefixFrom(addr, addr.BitLen()).String()}
			}
		}
		out = append(out, p)
	}
	return out
}

func (g policyGenerator) ports() (out []networkingv1.NetworkPolicyPort) {
	for range g.IntN(3) {
		proto := one(g, corev1.ProtocolTCP, corev1.ProtocolUDP)
		p := networkingv1.NetworkPolicyPort{Protocol: &proto}
		switch g.IntN(4) {
		case 0:
			port := intstr.FromString(one(g, "web", "tcp80", "udp81"))
			p.Port = &port
		case 1:
			port := intstr.FromInt32(one[int32](g, 80, 81))
			p.Port = &port
		case 2:
			port, end := intstr.FromInt32(one[int32](g, 1, 81)), one[int32](g, 81, 1000)
			p.Port, p.EndPort = &port, &end
		}
		out = append(out, p)
	}
	return out
}

func (g policyGenerator) policy(n int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: one(g, "x", "y", "z"), Name: fmt.Sprint("random-", n)},
	}
	p.Spec.PodSelector = *g.selectPods()
	p.Spec.PolicyTypes = one(g, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
	for range g.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: g.peers(), Ports: g.ports()})
	}
	for range g.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: g.peers(), Ports: g.ports()})
	}
	return p
}
