package k8spolicy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// kind is what rules can tell of a pod as a peer: pods of one kind are in the same rules.
type kind struct {
	name      string     // says all of what follows
	namespace string     // if a rule there selects pods of its own namespace
	listed    bool       // the namespace is known
	ofSpace   labels.Set // labels of the namespace that a rule asks for
	labels    labels.Set // those of the pod
	ports     []NamedPort
}

// distinctions are what rules ask of peers, other than their addresses.
type distinctions struct {
	own        map[string]bool // namespaces in which a rule selects pods of its own namespace
	namespaces map[string]bool // labels of namespaces
	pods       map[string]bool // labels of pods
	ports      map[portName]bool
}

type portName struct {
	name  string
	proto uint8
}

func (w *ClusterState) distinctions() distinctions {
	d := distinctions{own: map[string]bool{}, namespaces: map[string]bool{}, pods: map[string]bool{}, ports: map[portName]bool{}}
	for namespace, policies := range w.policies {
		for _, p := range policies {
			d.add(namespace, p.Ingress, false)
			d.add(namespace, p.Egress, true)
		}
	}
	return d
}

func (d distinctions) add(namespace string, s Side, out bool) {
	for _, r := range s.Rules {
		for _, p := range r.Peers {
			switch {
			case p.Blocks != nil:
				continue
			case p.Namespaces == nil:
				d.own[namespace] = true
			default:
				asked(d.namespaces, p.Namespaces)
			}
			asked(d.pods, p.Pods)
		}
		for _, port := range r.Ports {
			if out && port.Name != "" {
				d.ports[portName{port.Name, port.Proto}] = true
			}
		}
	}
}

// asked adds the labels that a selector asks for.
func asked(keys map[string]bool, s labels.Selector) {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		keys[r.Key()] = true
	}
}

func (d distinctions) equal(o distinctions) bool {
	return maps.Equal(d.own, o.own) && maps.Equal(d.namespaces, o.namespaces) && maps.Equal(d.pods, o.pods) && maps.Equal(d.ports, o.ports)
}

// with are the distinctions of both.
func (d distinctions) with(o distinctions) distinctions {
	return distinctions{either(d.own, o.own), either(d.namespaces, o.namespaces), either(d.pods, o.pods), either(d.ports, o.ports)}
}

func either[K comparable](a, b map[K]bool) map[K]bool {
	out := make(map[K]bool, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// kindOf reduces a pod to what rules ask.
func (d distinctions) kindOf(p Pod, n Namespace, listed bool) kind {
	return d.reduce(kind{namespace: p.Key.Namespace, listed: listed, ofSpace: n.Labels, labels: p.Labels, ports: p.Ports})
}

// reduce returns a kind by fewer distinctions.
func (d distinctions) reduce(k kind) kind {
	out := kind{listed: k.listed, ofSpace: only(k.ofSpace, d.namespaces), labels: only(k.labels, d.pods)}
	if d.own[k.namespace] {
		out.namespace = k.namespace
	}
	seen := map[portName]bool{}
	for _, port := range k.ports {
		at := portName{port.Name, port.Proto}
		if d.ports[at] && !seen[at] { // the first counts
			out.ports = append(out.ports, port)
		}
		seen[at] = true
	}
	slices.SortFunc(out.ports, func(a, b NamedPort) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Proto, b.Proto)) })
	out.name = fmt.Sprintf("%q %t %q %q %q", out.namespace, out.listed, out.ofSpace.String(), out.labels.String(), fmt.Sprint(out.ports))
	return out
}

func only(all labels.Set, keys map[string]bool) labels.Set {
	out := labels.Set{}
	for key, v := range all {
		if keys[key] {
			out[key] = v
		}
	}
	return out
}

func (k kind) port(name string, proto uint8) (uint16, bool) {
	return Pod{Ports: k.ports}.port(name, proto)
}

// selects reports whether a peer of a policy in namespace own selects pods of a kind.
func (p Peer) selects(k kind, own string) bool {
	if p.Namespaces == nil {
		return k.namespace == own && p.Pods.Matches(k.labels)
	}
	return k.listed && p.Namespaces.Matches(k.ofSpace) && p.Pods.Matches(k.labels)
}
