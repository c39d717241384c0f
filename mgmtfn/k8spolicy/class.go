package k8spolicy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/contiv/netplugin/ofnet"
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

// class is the kinds of the pods that have an address: one, or several while one pod replaces
// another.
type class struct {
	name   string
	number uint32 // derived from the name
	kinds  []kind
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

// classes are the classes of pods' addresses.
type classes struct {
	by      distinctions
	at      map[netip.Addr]map[string]*class // by address and tenant
	named   map[string]*class
	taken   map[uint32]string         // names by number
	tenants map[string]map[*class]int // addresses, by tenant
}

func newClasses() classes {
	return classes{
		at: map[netip.Addr]map[string]*class{}, named: map[string]*class{}, taken: map[uint32]string{}, tenants: map[string]map[*class]int{},
	}
}

// nameOf sorts kinds, and names their class.
func nameOf(kinds []kind) ([]kind, string) {
	slices.SortFunc(kinds, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	kinds = slices.CompactFunc(kinds, func(a, b kind) bool { return a.name == b.name })
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return kinds, strings.Join(names, " and ")
}

// get returns the class of kinds. Its number is the one that its name says, or the next free
// one.
func (c *classes) get(kinds []kind) *class {
	kinds, name := nameOf(kinds)
	if known, ok := c.named[name]; ok {
		return known
	}
	number := uint32(ofnet.Fingerprint(name))
	for number == 0 || c.taken[number] != "" {
		number++
	}
	c.taken[number] = name
	c.named[name] = &class{name: name, number: number, kinds: kinds}
	return c.named[name]
}

// set replaces the classes of an address, by tenant, and reports whether a tenant has got a
// class that it had not, or lost one.
func (c *classes) set(a netip.Addr, now map[string]*class) (changed bool) {
	for tenant, in := range now {
		if c.tenants[tenant] == nil {
			c.tenants[tenant] = map[*class]int{}
		}
		c.tenants[tenant][in]++
		changed = changed || c.tenants[tenant][in] == 1
	}
	for tenant, in := range c.at[a] {
		if c.tenants[tenant][in]--; c.tenants[tenant][in] == 0 {
			delete(c.tenants[tenant], in)
			changed = true
		}
	}
	if c.at[a] = now; len(now) == 0 {
		delete(c.at, a)
	}
	return changed
}

// forget frees the numbers of classes that no tenant has.
func (c *classes) forget() {
	for name, class := range c.named {
		used := false
		for _, all := range c.tenants {
			used = used || all[class] > 0
		}
		if !used {
			delete(c.named, name)
			delete(c.taken, class.number)
		}
	}
}

// classify brings the classes of addresses up to date. What told pods apart at the last
// compilation still does: classes become finer here, and coarser in coarsen.
func (w *ClusterState) classify() {
	if w.ruled {
		w.ruled = false
		w.asked = w.distinctions()
		w.distinguish(w.asked.with(w.compiled.by))
	}
	w.reclassify()
}

// coarsen lets no longer tell pods apart what was only told apart by policies that were gone at
// the last compilation. Sets have treated such pods alike since then.
func (w *ClusterState) coarsen() {
	if !w.ruled {
		w.distinguish(w.asked)
	}
}

// Coarser reports whether the next compilation comes to fewer classes, if nothing changes.
func (w *ClusterState) Coarser() bool { return !w.classes.by.equal(w.asked) }

func (w *ClusterState) distinguish(by distinctions) {
	if !by.equal(w.classes.by) {
		w.classes.by, w.all = by, true
	}
}

// reclassify finds the classes of addresses that may have changed.
func (w *ClusterState) reclassify() {
	if w.all {
		w.all = false
		for a := range w.classes.at {
			w.moved[a] = struct{}{}
		}
		for a := range w.byAddress {
			w.moved[a] = struct{}{}
		}
	}
	changed := false
	for a := range w.moved {
		changed = w.classes.set(a, w.classesAt(a)) || changed
	}
	clear(w.moved)
	if changed {
		w.classes.forget()
		clear(w.members)
	}
}

// classesAt returns the classes of an address, by tenant.
func (w *ClusterState) classesAt(a netip.Addr) map[string]*class {
	kinds := map[string][]kind{}
	for key := range w.byAddress[a] {
		if p, _ := w.Pod(key); !p.Outside {
			n, listed := w.namespaces[p.Key.Namespace]
			tenant := w.tenant(p)
			kinds[tenant] = append(kinds[tenant], w.classes.by.kindOf(p, n, listed))
		}
	}
	out := make(map[string]*class, len(kinds))
	for tenant, all := range kinds {
		out[tenant] = w.classes.get(all)
	}
	return out
}

// classOf is the number of the class of an address for pods of a tenant; 0: none.
func (w *ClusterState) classOf(tenant string, a netip.Addr) uint32 {
	w.classify()
	if class, ok := w.classes.at[a][tenant]; ok {
		return class.number
	}
	return 0
}

// compiled is what classes were at the last compilation.
type compiled struct {
	by      distinctions
	numbers map[string]uint32 // by name
}

// remember keeps what classes are.
func (w *ClusterState) remember() {
	w.compiled = compiled{by: w.classes.by, numbers: make(map[string]uint32, len(w.classes.named))}
	for name, c := range w.classes.named {
		w.compiled.numbers[name] = c.number
	}
}

// origins lists the classes that there were not at the last compilation, with the one that each
// was part of then; 0: none.
func (w *ClusterState) origins() map[uint32]uint32 {
	out := map[uint32]uint32{}
	for name, c := range w.classes.named {
		if _, known := w.compiled.numbers[name]; known {
			continue
		}
		kinds := make([]kind, len(c.kinds))
		for i, k := range c.kinds {
			kinds[i] = w.compiled.by.reduce(k)
		}
		_, before := nameOf(kinds)
		out[c.number] = w.compiled.numbers[before]
	}
	return out
}
