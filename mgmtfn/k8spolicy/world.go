package k8spolicy

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// World is the part of a cluster that policies depend on. It is not safe for concurrent
// use.
type World struct {
	namespaces map[string]Namespace
	pods       map[string]map[string]Pod // by namespace and name
	policies   map[string]map[string]Policy
	// members remembers which pods a peer stands for, until one of them changes.
	members map[memberKey]member
}

// memberKey is a peer, by what its selectors say.
type memberKey struct{ namespace, namespaces, pods string }

type member struct {
	peer      Peer
	namespace string // of the policy
	pods      []Pod
}

// NewWorld makes an empty world.
func NewWorld() *World {
	return &World{
		namespaces: map[string]Namespace{}, pods: map[string]map[string]Pod{}, policies: map[string]map[string]Policy{},
		members: map[memberKey]member{},
	}
}

// Pod returns a pod.
func (w *World) Pod(k Key) (Pod, bool) {
	p, ok := w.pods[k.Namespace][k.Name]
	return p, ok
}

// SetPod adds a pod or replaces it.
func (w *World) SetPod(p Pod) {
	w.RemovePod(p.Key)
	if w.pods[p.Key.Namespace] == nil {
		w.pods[p.Key.Namespace] = map[string]Pod{}
	}
	w.pods[p.Key.Namespace][p.Key.Name] = p
	w.forgetMembers(p)
}

// RemovePod removes a pod.
func (w *World) RemovePod(k Key) {
	if p, ok := w.Pod(k); ok {
		delete(w.pods[k.Namespace], k.Name)
		w.forgetMembers(p)
	}
}

// SetNamespace adds a namespace or replaces it.
func (w *World) SetNamespace(n Namespace) {
	old, had := w.namespaces[n.Name]
	w.namespaces[n.Name] = n
	if !had || !maps.Equal(old.Labels, n.Labels) || old.Tenant != n.Tenant {
		clear(w.members)
	}
}

// RemoveNamespace removes a namespace.
func (w *World) RemoveNamespace(name string) {
	delete(w.namespaces, name)
	clear(w.members)
}

// SetPolicy adds a policy or replaces it.
func (w *World) SetPolicy(p Policy) {
	if w.policies[p.Key.Namespace] == nil {
		w.policies[p.Key.Namespace] = map[string]Policy{}
	}
	w.policies[p.Key.Namespace][p.Key.Name] = p
	clear(w.members) // of peers nobody may speak of any more
}

// RemovePolicy removes a policy.
func (w *World) RemovePolicy(k Key) {
	delete(w.policies[k.Namespace], k.Name)
	clear(w.members)
}

// tenant is where a pod lives. What its namespace says counts first.
func (w *World) tenant(p Pod) string {
	switch t := w.namespaces[p.Key.Namespace].Tenant; {
	case t != "":
		return t
	case p.Tenant != "":
		return p.Tenant
	}
	return "default"
}

// selecting lists the policies that select a pod, by name.
func (w *World) selecting(p Pod) []Policy {
	var out []Policy
	for _, policy := range w.policies[p.Key.Namespace] {
		if policy.Pods != nil && !p.Outside && policy.Pods.Matches(p.Labels) {
			out = append(out, policy)
		}
	}
	slices.SortFunc(out, func(a, b Policy) int { return compare(a.Key, b.Key) })
	return out
}

// forgetMembers forgets what was found out about peers that a pod belongs to.
func (w *World) forgetMembers(p Pod) {
	for key, m := range w.members {
		if w.matches(m.peer, m.namespace, p) {
			delete(w.members, key)
		}
	}
}

// matches reports whether a peer of a policy in a namespace stands for a pod.
func (w *World) matches(peer Peer, namespace string, p Pod) bool {
	if p.Outside || !peer.Pods.Matches(p.Labels) {
		return false
	}
	if peer.Namespaces == nil {
		return p.Key.Namespace == namespace
	}
	n, ok := w.namespaces[p.Key.Namespace]
	return ok && peer.Namespaces.Matches(n.Labels)
}

// standsFor lists the pods of a peer.
func (w *World) standsFor(peer Peer, namespace string) []Pod {
	key := memberKey{namespace: namespace, pods: peer.Pods.String()}
	if peer.Namespaces != nil {
		key = memberKey{namespaces: "=" + peer.Namespaces.String(), pods: key.pods}
	}
	if m, ok := w.members[key]; ok {
		return m.pods
	}
	m := member{peer: peer, namespace: namespace}
	for _, name := range w.among(peer.Namespaces, namespace) {
		for _, p := range w.pods[name] {
			if w.matches(peer, namespace, p) {
				m.pods = append(m.pods, p)
			}
		}
	}
	w.members[key] = m
	return m.pods
}

func (w *World) among(namespaces labels.Selector, own string) []string {
	if namespaces == nil {
		return []string{own}
	}
	return slices.Collect(maps.Keys(w.pods))
}

// prefixes are a pod's addresses.
func (p Pod) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, len(p.IPs))
	for i, a := range p.IPs {
		out[i] = netip.PrefixFrom(a, a.BitLen())
	}
	return out
}
