package k8spolicy

import (
	"cmp"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/contiv/netplugin/mgmtfn/placement"
)

// IP protocols.
const protoTCP, protoUDP, protoSCTP = 6, 17, 132

// tenantOf is the tenant that a pod or a namespace names itself.
func tenantOf(o metav1.ObjectMeta) string { return placement.Annotated(o.Labels, o.Annotations).Tenant }

func protocol(p *corev1.Protocol) (uint8, error) {
	if p == nil {
		return protoTCP, nil
	}
	switch *p {
	case corev1.ProtocolTCP, "":
		return protoTCP, nil
	case corev1.ProtocolUDP:
		return protoUDP, nil
	case corev1.ProtocolSCTP:
		return protoSCTP, nil
	}
	return 0, fmt.Errorf("protocol %q: expected TCP, UDP or SCTP", *p)
}

// ParsePod reads a pod. What does not parse is left out, as the API server has checked it.
func ParsePod(p *corev1.Pod) Pod {
	out := Pod{
		Key: Key{p.Namespace, p.Name}, UID: runtimeUID(p), Labels: p.Labels, Tenant: tenantOf(p.ObjectMeta),
		Outside: p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			out.IPs = append(out.IPs, a.Unmap())
		}
	}
	containers := p.Spec.Containers
	for _, c := range p.Spec.InitContainers { // those that go on beside the others
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers[:len(containers):len(containers)], c)
		}
	}
	for _, c := range containers {
		for _, port := range c.Ports {
			proto, err := protocol(&port.Protocol)
			if err == nil && port.Name != "" && port.ContainerPort > 0 && port.ContainerPort < 1<<16 {
				out.Ports = append(out.Ports, NamedPort{port.Name, proto, uint16(port.ContainerPort)})
			}
		}
	}
	return out
}

// runtimeUID is what kubelet and runtime call a pod: one that the kubelet has from a file
// has another UID in the API server.
func runtimeUID(p *corev1.Pod) string {
	return cmp.Or(p.Annotations[corev1.MirrorPodAnnotationKey], string(p.UID))
}

// ParseNamespace reads a namespace.
func ParseNamespace(n *corev1.Namespace) Namespace {
	return Namespace{Name: n.Name, Labels: n.Labels, Tenant: tenantOf(n.ObjectMeta)}
}

// ParsePolicy reads a policy. On an error the policy isolates the pods it selects all
// the same, and allows what of it could be read; a selector of pods that cannot be
// read selects none.
func ParsePolicy(p *networkingv1.NetworkPolicy) (Policy, error) {
	out := Policy{Key: Key{p.Namespace, p.Name}}
	var err error
	if out.Pods, err = metav1.LabelSelectorAsSelector(&p.Spec.PodSelector); err != nil {
		return out, fmt.Errorf("policy %s: pod selector: %w", out.Key, err)
	}
	out.Ingress.Isolates = len(p.Spec.PolicyTypes) == 0
	out.Egress.Isolates = len(p.Spec.PolicyTypes) == 0 && len(p.Spec.Egress) > 0
	for _, t := range p.Spec.PolicyTypes {
		out.Ingress.Isolates = out.Ingress.Isolates || t == networkingv1.PolicyTypeIngress
		out.Egress.Isolates = out.Egress.Isolates || t == networkingv1.PolicyTypeEgress
	}
	var first error
	add := func(s *Side, direction string, i int, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
		r, err := parseRule(peers, ports)
		if err != nil && first == nil {
			first = fmt.Errorf("policy %s: %s rule %d: %w", out.Key, direction, i, err)
		}
		s.Rules = append(s.Rules, r)
	}
	for i, r := range p.Spec.Ingress {
		add(&out.Ingress, "ingress", i, r.From, r.Ports)
	}
	for i, r := range p.Spec.Egress {
		add(&out.Egress, "egress", i, r.To, r.Ports)
	}
	return out, first
}

// parseRule leaves out the peers and ports it cannot read, and returns the first error.
func parseRule(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) (Rule, error) {
	r := Rule{AnyPeer: len(peers) == 0, AnyPort: len(ports) == 0}
	var first error
	for _, p := range peers {
		peer, err := parsePeer(p)
		if err == nil {
			r.Peers = append(r.Peers, peer)
		} else if first == nil {
			first = err
		}
	}
	for _, p := range ports {
		port, err := parsePort(p)
		if err == nil {
			r.Ports = append(r.Ports, port)
		} else if first == nil {
			first = err
		}
	}
	return r, first
}

func parsePeer(p networkingv1.NetworkPolicyPeer) (Peer, error) {
	if p.IPBlock != nil {
		return parseBlock(p)
	}
	if p.PodSelector == nil && p.NamespaceSelector == nil {
		return Peer{}, fmt.Errorf("a peer is empty: expected a selector or an ipBlock")
	}
	var peer Peer
	var err error
	if p.NamespaceSelector != nil {
		if peer.Namespaces, err = metav1.LabelSelectorAsSelector(p.NamespaceSelector); err != nil {
			return Peer{}, fmt.Errorf("namespace selector: %w", err)
		}
	}
	pods := p.PodSelector
	if pods == nil {
		pods = &metav1.LabelSelector{} // all
	}
	if peer.Pods, err = metav1.LabelSelectorAsSelector(pods); err != nil {
		return Peer{}, fmt.Errorf("pod selector: %w", err)
	}
	return peer, nil
}

func parseBlock(p networkingv1.NetworkPolicyPeer) (Peer, error) {
	if p.PodSelector != nil || p.NamespaceSelector != nil {
		return Peer{}, fmt.Errorf("ipBlock %s has a selector beside it: expected one of them", p.IPBlock.CIDR)
	}
	cidr, err := netip.ParsePrefix(p.IPBlock.CIDR)
	if err != nil {
		return Peer{}, fmt.Errorf("ipBlock: %w", err)
	}
	var except []netip.Prefix
	for _, text := range p.IPBlock.Except {
		e, err := netip.ParsePrefix(text)
		if err != nil {
			return Peer{}, fmt.Errorf("ipBlock %s: except: %w", cidr, err)
		}
		except = append(except, e.Masked())
	}
	blocks, err := subtract(cidr.Masked(), except)
	if err != nil {
		return Peer{}, fmt.Errorf("ipBlock: %w", err)
	}
	return Peer{Blocks: blocks}, nil
}

func parsePort(p networkingv1.NetworkPolicyPort) (Port, error) {
	proto, err := protocol(p.Protocol)
	if err != nil {
		return Port{}, err
	}
	switch {
	case p.Port == nil && p.EndPort != nil:
		return Port{}, fmt.Errorf("endPort %d has no port", *p.EndPort)
	case p.Port == nil:
		return Port{Proto: proto, High: 1<<16 - 1}, nil
	case p.Port.Type == intstr.String && p.EndPort != nil:
		return Port{}, fmt.Errorf("port %s with endPort %d: expected a number", p.Port.StrVal, *p.EndPort)
	case p.Port.Type == intstr.String:
		return Port{Proto: proto, Name: p.Port.StrVal}, nil
	}
	low, high := p.Port.IntVal, p.Port.IntVal
	if p.EndPort != nil {
		high = *p.EndPort
	}
	if low < 1 || high < low || high >= 1<<16 {
		return Port{}, fmt.Errorf("ports %d to %d: expected a range within 1 to 65535", low, high)
	}
	return Port{Proto: proto, Low: uint16(low), High: uint16(high)}, nil
}
