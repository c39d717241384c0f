package k8spolicy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/ofnet"
)

// class is the kinds of the pods that have an address: one, or several while one pod replaces
// another.
type class struct {
	name   string
	number uint32 // derived from the name
	kinds  []kind
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
