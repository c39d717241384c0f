package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload makes random pods and NetworkPolicies, in three namespaces: hardly two pods are
// selected by the same policies, which is the worst case for sets that pods share.
type workload struct{ *rand.Rand }

func pick[T any](w workload, all ...T) T { return all[w.IntN(len(all))] }

func some[T any](w workload, most int, one func() T) (out []T) {
	for range w.IntN(most + 1) {
		out = append(out, one())
	}
	return out
}

func (w workload) namespace() string { return pick(w, "x", "y", "z") }

func (w workload) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"app", "tier"} {
		if v := pick(w, "a", "b", ""); v != "" {
			out[k] = v
		}
	}
	return out
}

func (w workload) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if w.IntN(2) == 0 {
		s.MatchLabels = map[string]string{pick(w, "app", "tier"): pick(w, "a", "b")}
	}
	if w.IntN(3) == 0 {
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: pick(w, "app", "tier"), Operator: pick(w, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}
	}
	return s
}

func (w workload) peer() networkingv1.NetworkPolicyPeer {
	switch w.IntN(4) {
	case 0:
		return networkingv1.NetworkPolicyPeer{PodSelector: w.selector()}
	case 1:
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: w.selector()}
	case 2:
		return networkingv1.NetworkPolicyPeer{PodSelector: w.selector(), NamespaceSelector: w.selector()}
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: pick(w,
		&networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "10.1.1.0/24", Except: []string{"10.1.1.0/30", "10.1.1.9/32"}},
		&networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}})}
}

func (w workload) port() networkingv1.NetworkPolicyPort {
	proto, number := pick(w, corev1.ProtocolTCP, corev1.ProtocolUDP), intstr.FromInt32(pick[int32](w, 53, 80, 81))
	p := networkingv1.NetworkPolicyPort{Protocol: &proto, Port: &number}
	if w.IntN(2) == 0 {
		end := pick[int32](w, 81, 100)
		p.EndPort = &end
	}
	return p
}

func (w workload) policy(i int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: fmt.Sprint("p", i)}}
	p.Spec.PodSelector = *w.selector()
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}[:1+w.IntN(2)]
	p.Spec.Ingress = some(w, 2, func() networkingv1.NetworkPolicyIngressRule {
		return networkingv1.NetworkPolicyIngressRule{From: some(w, 3, w.peer), Ports: some(w, 3, w.port)}
	})
	p.Spec.Egress = some(w, 2, func() networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: some(w, 3, w.peer), Ports: some(w, 3, w.port)}
	})
	return p
}

// pod has an address of its own; that of pod i, unless it is to get another one.
func (w workload) pod(i, address int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: fmt.Sprint("pod", i), UID: "u", Labels: w.labels()}}
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIPs = []corev1.PodIP{{IP: podAddress(address).String()}}
	return p
}

func podAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}) }
