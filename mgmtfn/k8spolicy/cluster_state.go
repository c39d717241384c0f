package k8spolicy

import (
	"cmp"
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
	// classes are what rules can tell pods apart by. What has changed since they were brought
	// up to date: policies, everything, or pods at some addresses.
	classes  classes
	asked    distinctions // by the policies there are
	compiled compiled
	ruled    bool
	all      bool
	moved    map[netip.Addr]struct{}
	// members caches the classes that a peer selects, until a tenant gets or loses one.
	members map[memberKey][]member
}

// memberKey identifies a peer in a tenant by its selectors.
type memberKey struct{ tenant, namespace, namespaces, pods string }

// member is a class that a peer selects, and the kinds for which it does.
type member struct {
	number uint32
	kinds  []kind
}

// NewClusterState makes an empty cluster state.
func NewClusterState() *ClusterState {
	return &ClusterState{
		namespaces: map[string]Namespace{}, pods: map[string]map[string]Pod{}, policies: map[string]map[string]Policy{},
		byAddress: map[netip.Addr]map[Key]struct{}{}, classes: newClasses(), moved: map[netip.Addr]struct{}{}, members: map[memberKey][]member{},
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
		w.moved[a] = struct{}{}
	}
}

// RemovePod removes a pod.
func (w *ClusterState) RemovePod(k Key) {
	if p, ok := w.Pod(k); ok {
		delete(w.pods[k.Namespace], k.Name)
		for _, a := range p.IPs {
			if delete(w.byAddress[a], k); len(w.byAddress[a]) == 0 {
				delete(w.byAddress, a)
			}
			w.moved[a] = struct{}{}
		}
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
		w.all = true
	}
}

// RemoveNamespace removes a namespace.
func (w *ClusterState) RemoveNamespace(name string) {
	delete(w.namespaces, name)
	w.all = true
}

// SetPolicy adds a policy or replaces it.
func (w *ClusterState) SetPolicy(p Policy) {
	if w.policies[p.Key.Namespace] == nil {
		w.policies[p.Key.Namespace] = map[string]Policy{}
	}
	w.policies[p.Key.Namespace][p.Key.Name] = p
	w.ruled = true
	clear(w.members) // of peers that may no longer exist
}

// RemovePolicy removes a policy.
func (w *ClusterState) RemovePolicy(k Key) {
	delete(w.policies[k.Namespace], k.Name)
	w.ruled = true
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

// standsFor returns the classes of a tenant's pods that a peer of a policy in namespace own
// selects: in other tenants, other pods have their addresses.
func (w *ClusterState) standsFor(peer Peer, own, tenant string) []member {
	key := memberKey{tenant: tenant, namespace: own, pods: peer.Pods.String()}
	if peer.Namespaces != nil {
		key.namespace, key.namespaces = "", "="+peer.Namespaces.String()
	}
	if m, ok := w.members[key]; ok {
		return m
	}
	var out []member
	for class := range w.classes.tenants[tenant] {
		m := member{number: class.number}
		for _, k := range class.kinds {
			if peer.selects(k, own) {
				m.kinds = append(m.kinds, k)
			}
		}
		if m.kinds != nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(a.number, b.number) })
	w.members[key] = out
	return out
}
