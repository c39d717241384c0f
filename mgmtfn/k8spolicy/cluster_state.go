package k8spolicy

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/mgmtfn/placement"
)

// ClusterState is the part of a cluster that policies depend on. It is not safe for concurrent
// use.
type ClusterState struct {
	namespaces map[string]Namespace
	pods       map[string]map[string]Pod // by namespace and name
	policies   map[string]map[string]Policy
	byAddress  map[netip.Addr]map[Key]struct{} // pods; of several tenants, or one that replaces another
	// members caches the pods that a peer selects, until one of them changes.
	members map[memberKey]members
}

// memberKey identifies a peer in a tenant by its selectors.
type memberKey struct{ tenant, namespace, namespaces, pods string }

// members are the pods of a tenant that a peer selects.
type members struct {
	peer      Peer
	namespace string // of the policy
	pods      []Pod
	addresses []netip.Prefix // theirs, sorted; not to be changed
}

// NewClusterState makes an empty cluster state.
func NewClusterState() *ClusterState {
	return &ClusterState{
		namespaces: map[string]Namespace{}, pods: map[string]map[string]Pod{}, policies: map[string]map[string]Policy{},
		byAddress: map[netip.Addr]map[Key]struct{}{}, members: map[memberKey]members{},
	}
}

// Pod returns a pod.
func (w *ClusterState) Pod(k Key) (Pod, bool) {
	p, ok := w.pods[k.Namespace][k.Name]
	return p, ok
}

// SetPod adds a pod or replaces it.
func (w *ClusterState) SetPod(p Pod) {
	w.RemovePod(p.Key)
	if w.pods[p.Key.Namespace] == nil {
		w.pods[p.Key.Namespace] = map[string]Pod{}
	}
	w.pods[p.Key.Namespace][p.Key.Name] = p
	for _, a := range p.IPs {
		if w.byAddress[a] == nil {
			w.byAddress[a] = map[Key]struct{}{}
		}
		w.byAddress[a][p.Key] = struct{}{}
	}
	w.forgetMembers(p)
}

// RemovePod removes a pod.
func (w *ClusterState) RemovePod(k Key) {
	if p, ok := w.Pod(k); ok {
		delete(w.pods[k.Namespace], k.Name)
		for _, a := range p.IPs {
			if delete(w.byAddress[a], k); len(w.byAddress[a]) == 0 {
				delete(w.byAddress, a)
			}
		}
		w.forgetMembers(p)
	}
}

// podAt returns the pod of a tenant with an address; ok is false if there is none, or more
// than one.
func (w *ClusterState) podAt(tenant string, a netip.Addr) (found Pod, ok bool) {
	for key := range w.byAddress[a] {
		p, _ := w.Pod(key)
		if p.Outside || w.tenant(p) != tenant {
			continue
		}
		if ok {
			return Pod{}, false
		}
		found, ok = p, true
	}
	return found, ok
}

// SetNamespace adds a namespace or replaces it.
func (w *ClusterState) SetNamespace(n Namespace) {
	old, had := w.namespaces[n.Name]
	w.namespaces[n.Name] = n
	if !had || !maps.Equal(old.Labels, n.Labels) || old.Tenant != n.Tenant {
		clear(w.members)
	}
}

// RemoveNamespace removes a namespace.
func (w *ClusterState) RemoveNamespace(name string) {
	delete(w.namespaces, name)
	clear(w.members)
}

// SetPolicy adds a policy or replaces it.
func (w *ClusterState) SetPolicy(p Policy) {
	if w.policies[p.Key.Namespace] == nil {
		w.policies[p.Key.Namespace] = map[string]Policy{}
	}
	w.policies[p.Key.Namespace][p.Key.Name] = p
	clear(w.members) // of peers that may no longer exist
}

// RemovePolicy removes a policy.
func (w *ClusterState) RemovePolicy(k Key) {
	delete(w.policies[k.Namespace], k.Name)
	clear(w.members)
}

// tenant is the tenant of a pod.
func (w *ClusterState) tenant(p Pod) string {
	return placement.Tenant(p.Tenant, w.namespaces[p.Key.Namespace].Tenant)
}

// selecting lists the policies that select a pod, by name.
func (w *ClusterState) selecting(p Pod) []Policy {
	var out []Policy
	for _, policy := range w.policies[p.Key.Namespace] {
		if policy.Pods != nil && !p.Outside && policy.Pods.Matches(p.Labels) {
			out = append(out, policy)
		}
	}
	slices.SortFunc(out, func(a, b Policy) int { return compare(a.Key, b.Key) })
	return out
}

// forgetMembers drops cached results for peers that select a pod.
func (w *ClusterState) forgetMembers(p Pod) {
	for key, m := range w.members {
		if w.matches(m.peer, m.namespace, p) {
			delete(w.members, key)
		}
	}
}

// matches reports whether a peer of a policy in a namespace selects a pod.
func (w *ClusterState) matches(peer Peer, own string, p Pod) bool {
	return peer.selects(p) && w.means(peer, own, p.Key.Namespace)
}

// means reports whether a peer of a policy in namespace own applies to namespace name.
func (w *ClusterState) means(peer Peer, own, name string) bool {
	if peer.Namespaces == nil {
		return name == own
	}
	n, ok := w.namespaces[name]
	return ok && peer.Namespaces.Matches(n.Labels)
}

// selects reports whether a peer selects a pod, given that it applies to its namespace.
func (p Peer) selects(pod Pod) bool { return !pod.Outside && p.Pods.Matches(pod.Labels) }

// standsFor returns a tenant's pods that a peer selects: in other tenants, other pods have
// these addresses.
func (w *ClusterState) standsFor(peer Peer, own, tenant string) members {
	key := memberKey{tenant: tenant, namespace: own, pods: peer.Pods.String()}
	if peer.Namespaces != nil {
		key.namespace, key.namespaces = "", "="+peer.Namespaces.String()
	}
	if m, ok := w.members[key]; ok {
		return m
	}
	m := members{peer: peer, namespace: own}
	for name, pods := range w.pods {
		if !w.means(peer, own, name) {
			continue
		}
		for _, p := range pods {
			if peer.selects(p) && w.tenant(p) == tenant {
				m.pods = append(m.pods, p)
				m.addresses = append(m.addresses, p.prefixes()...)
			}
		}
	}
	m.addresses = sorted(m.addresses)
	w.members[key] = m
	return m
}

// prefixes are a pod's addresses.
func (p Pod) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, len(p.IPs))
	for i, a := range p.IPs {
		out[i] = netip.PrefixFrom(a, a.BitLen())
	}
	return out
}
