package k8spolicy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/contiv/netplugin/ofnet"
)

// cluster is what the API server has, for an evaluator that reads policies as their
// documentation does, object by object, and shares nothing with what it checks.
type cluster struct {
	namespaces []*corev1.Namespace
	pods       []*corev1.Pod
	policies   []*networkingv1.NetworkPolicy
}

// visitor is one end of a connection: a pod, or an address of nobody's.
type visitor struct {
	pod  *corev1.Pod
	addr netip.Addr
}

// question is the first packet of a connection.
type question struct {
	from, to visitor
	proto    corev1.Protocol // empty: ICMP
	port     int32
}

// allowed reports whether a direction of a pod's policies lets a connection be opened.
func (c cluster) allowed(pod *corev1.Pod, egress bool, q question) bool {
	if outside(pod) {
		return true
	}
	isolated := false
	for _, p := range c.policies {
		if p.Namespace != pod.Namespace || !labelled(&p.Spec.PodSelector, pod.Labels) || !listed(p, egress) {
			continue
		}
		isolated = true
		if egress {
			for _, r := range p.Spec.Egress {
				if c.peer(p, r.To, q.to) && port(r.Ports, q, q.to.pod) {
					return true
				}
			}
			continue
		}
		for _, r := range p.Spec.Ingress {
			if c.peer(p, r.From, q.from) && port(r.Ports, q, pod) {
				return true
			}
		}
	}
	return !isolated
}

func outside(p *corev1.Pod) bool {
	return p.Spec.HostNetwork || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

func listed(p *networkingv1.NetworkPolicy, egress bool) bool {
	if len(p.Spec.PolicyTypes) == 0 {
		return !egress || len(p.Spec.Egress) > 0
	}
	want := networkingv1.PolicyTypeIngress
	if egress {
		want = networkingv1.PolicyTypeEgress
	}
	return slices.Contains(p.Spec.PolicyTypes, want)
}

func labelled(s *metav1.LabelSelector, labels map[string]string) bool {
	for k, v := range s.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		v, has := labels[e.Key]
		ok := false
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			ok = has && slices.Contains(e.Values, v)
		case metav1.LabelSelectorOpNotIn:
			ok = !has || !slices.Contains(e.Values, v)
		case metav1.LabelSelectorOpExists:
			ok = has
		case metav1.LabelSelectorOpDoesNotExist:
			ok = !has
		}
		if !ok {
			return false
		}
	}
	return true
}

func (c cluster) peer(p *networkingv1.NetworkPolicy, peers []networkingv1.NetworkPolicyPeer, v visitor) bool {
	if len(peers) == 0 {
		return true
	}
	for _, peer := range peers {
		if b := peer.IPBlock; b != nil {
			if netip.MustParsePrefix(b.CIDR).Contains(v.addr) &&
				!slices.ContainsFunc(b.Except, func(e string) bool { return netip.MustParsePrefix(e).Contains(v.addr) }) {
				return true
			}
			continue
		}
		if v.pod == nil || outside(v.pod) {
			continue
		}
		if peer.NamespaceSelector == nil && v.pod.Namespace != p.Namespace {
			continue
		}
		if peer.NamespaceSelector != nil && !slices.ContainsFunc(c.namespaces, func(n *corev1.Namespace) bool {
			return n.Name == v.pod.Namespace && labelled(peer.NamespaceSelector, n.Labels)
		}) {
			continue
		}
		if peer.PodSelector == nil || labelled(peer.PodSelector, v.pod.Labels) {
			return true
		}
	}
	return false
}

// port reports whether a connection is for one of the ports; names are those of pod.
//
// A name means something for pods only, and no policy sees those on their host's network.
func port(ports []networkingv1.NetworkPolicyPort, q question, pod *corev1.Pod) bool {
	if len(ports) == 0 {
		return true
	}
	for _, p := range ports {
		proto := corev1.ProtocolTCP
		if p.Protocol != nil {
			proto = *p.Protocol
		}
		if proto != q.proto {
			continue
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if pod != nil && !outside(pod) && named(pod, p.Port.StrVal, proto) == q.port {
				return true
			}
		case p.EndPort != nil:
			if p.Port.IntVal <= q.port && q.port <= *p.EndPort {
				return true
			}
		case p.Port.IntVal == q.port:
			return true
		}
	}
	return false
}

func named(pod *corev1.Pod, name string, proto corev1.Protocol) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name && p.Protocol == proto {
				return p.ContainerPort
			}
		}
	}
	return -1
}

// allows is what a set of the default tenant means, written without regard to flows.
func (r Result) allows(set string, peer netip.Addr, proto uint8, port uint16) bool {
	class, known := r.Peers[PeerAddr{"default", peer}]
	for _, a := range r.Sets[set].Allows {
		peers := len(a.Peers)+len(a.Classes) == 0 || known && slices.Contains(a.Classes, class) || slices.ContainsFunc(a.Peers, func(p netip.Prefix) bool { return p.Contains(peer) })
		ports := len(a.Ports) == 0
		for _, r := range a.Ports {
			ports = ports || r.Proto == proto && r.Low <= port && port <= r.High
		}
		if peers && ports {
			return true
		}
	}
	return false
}

// peersOf lists the addresses of pods of a tenant that an Allow means, sorted, and its blocks.
func (r Result) peersOf(tenant string, a ofnet.Allow) (out []string) {
	for at, class := range r.Peers {
		if at.Tenant == tenant && slices.Contains(a.Classes, class) {
			out = append(out, at.Addr.String())
		}
	}
	for _, p := range a.Peers {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}

// state is the cluster as Compile sees it.
func (c cluster) state() (*ClusterState, error) {
	w := NewClusterState()
	for _, n := range c.namespaces {
		w.SetNamespace(ParseNamespace(n))
	}
	for _, p := range c.pods {
		w.SetPod(ParsePod(p))
	}
	for _, p := range c.policies {
		policy, err := ParsePolicy(p)
		if err != nil {
			return nil, err
		}
		w.SetPolicy(policy)
	}
	return w, nil
}
