package k8spolicy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generator makes small clusters in which much coincides.
type generator struct{ *rand.Rand }

func pick[T any](g generator, all ...T) T { return all[g.IntN(len(all))] }

func some[T any](g generator, most int, one func() T) []T {
	var out []T
	for range g.IntN(most + 1) {
		out = append(out, one())
	}
	return out
}

func (g generator) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"app", "tier"} {
		if v := pick(g, "a", "b", ""); v != "" {
			out[k] = v
		}
	}
	return out
}

func (g generator) selector() metav1.LabelSelector {
	s := metav1.LabelSelector{}
	if g.IntN(2) == 0 {
		s.MatchLabels = map[string]string{pick(g, "app", "tier"): pick(g, "a", "b")}
	}
	if g.IntN(3) == 0 {
		e := metav1.LabelSelectorRequirement{Key: pick(g, "app", "tier"), Operator: pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = pick(g, []string{"a"}, []string{"a", "b"}, []string{"c"})
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func (g generator) peer() networkingv1.NetworkPolicyPeer {
	pods, namespaces := g.selector(), g.selector()
	switch g.IntN(4) {
	case 0:
		return networkingv1.NetworkPolicyPeer{PodSelector: &pods}
	case 1:
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: &namespaces}
	case 2:
		return networkingv1.NetworkPolicyPeer{PodSelector: &pods, NamespaceSelector: &namespaces}
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: pick(g,
		&networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"2001:db8:1::/126"}},
		&networkingv1.IPBlock{CIDR: "10.1.1.0/24", Except: []string{"10.1.1.0/30", "10.1.1.2/31", "10.1.1.9/32"}},
		&networkingv1.IPBlock{CIDR: "10.1.1.5/32"}, &networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}})}
}

func (g generator) port() networkingv1.NetworkPolicyPort {
	p := networkingv1.NetworkPolicyPort{}
	if g.IntN(3) > 0 {
		proto := pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		p.Protocol = &proto
	}
	switch g.IntN(4) {
	case 0:
		name := intstr.FromString(pick(g, "web", "dns"))
		p.Port = &name
	case 1, 2:
		number, end := intstr.FromInt32(pick[int32](g, 53, 80, 81)), pick[int32](g, 81, 100)
		p.Port = &number
		if g.IntN(2) == 0 {
			p.EndPort = &end
		}
	}
	return p
}

func (g generator) policy(namespace string, i int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", i)}}
	p.Spec.PodSelector = g.selector()
	for range g.IntN(3) {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, pick(g, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
	}
	p.Spec.Ingress = some(g, 2, func() networkingv1.NetworkPolicyIngressRule {
		return networkingv1.NetworkPolicyIngressRule{From: some(g, 3, g.peer), Ports: some(g, 3, g.port)}
	})
	p.Spec.Egress = some(g, 2, func() networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: some(g, 3, g.peer), Ports: some(g, 3, g.port)}
	})
	return p
}

func (g generator) pod(namespace string, i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("pod", i), UID: "u", Labels: g.labels()}}
	p.Spec.HostNetwork = g.IntN(10) == 0
	p.Status.Phase = pick(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded)
	p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprint("10.1.1.", i)}, {IP: fmt.Sprint("2001:db8:1::", i)}}
	for _, name := range []string{"web", "dns"} {
		if g.IntN(2) == 0 {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{
				Name: name, ContainerPort: pick[int32](g, 53, 80, 81), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP),
			}}})
		}
	}
	return p
}

func (g generator) cluster(pods, policies int) cluster {
	var c cluster
	names := []string{"x", "y", "z"}
	for _, n := range names {
		c.namespaces = append(c.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: g.labels()}})
	}
	for i := range pods {
		c.pods = append(c.pods, g.pod(pick(g, names...), i+1))
	}
	for i := range policies {
		c.policies = append(c.policies, g.policy(pick(g, names...), i))
	}
	return c
}

// question asks for a connection between two pods, or with nobody's address.
func (g generator) question(c cluster) question {
	q := question{proto: pick(g, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, ""), port: pick[int32](g, 53, 80, 81, 90, 100, 101)}
	family := g.IntN(2)
	end := func() visitor {
		if g.IntN(8) == 0 {
			return visitor{addr: netip.MustParseAddr([]string{pick(g, "192.0.2.1", "192.0.2.200"), "2001:db8:9::1"}[family])}
		}
		p := pick(g, c.pods...)
		return visitor{p, netip.MustParseAddr(p.Status.PodIPs[family].IP)}
	}
	q.from, q.to = end(), end()
	return q
}
