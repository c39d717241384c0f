package nameserver

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// kind is what a name is the name of; the first one wins.
type kind uint8

const (
	service kind = iota
	group
	container
	containerID
	numKinds
)

// node is what one name of a tenant stands for.
type node struct {
	v4, v6 [numKinds]*ring
	owners int // records that have this name
}

// tenant holds the names of one tenant, in lower case and without a final dot.
type tenant struct {
	nodes map[string]*node
	// hosts holds, by address, the names of those who have it, by owner.
	hosts map[netip.Addr]map[string]string
}

// Names is the index of all names. The zero value is not ready; use NewNames.
type Names struct {
	mu        sync.RWMutex
	networks  objdb.Mirror[string] // their tenants
	endpoints objdb.Mirror[entry]
	services  objdb.Mirror[entry]

	tenants map[string]*tenant
	known   map[string]int // networks by tenant, in lower case
	// The names of networks and tenants may have dots, so an id does not always tell where
	// one ends and the other begins: the record of the network does. ambiguous holds the
	// ids of the endpoints in networks with such ids, by network id.
	ambiguous map[string]map[string]struct{}
}

// NewNames makes an empty index.
func NewNames(log logrus.FieldLogger) *Names {
	n := &Names{tenants: map[string]*tenant{}, known: map[string]int{}, ambiguous: map[string]map[string]struct{}{}}
	unreadable := func(key string, err error) {
		log.WithError(err).WithField("key", key).Error("a record without readable names is ignored")
	}
	n.networks = objdb.Mirror[string]{Prefix: state.NetworkRoot, Decode: readNetwork, Changed: n.networkChanged} // the agent logs what it cannot read
	n.endpoints = objdb.Mirror[entry]{Prefix: state.EndpointRoot, Decode: readEndpoint, Changed: n.endpointChanged, Unreadable: unreadable}
	n.services = objdb.Mirror[entry]{Prefix: state.ServiceLBRoot, Decode: readService, Changed: n.replace, Unreadable: unreadable}
	return n
}

// Apply takes in a batch of the state prefix. A snapshot is all there is.
func (n *Names) Apply(batch objdb.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.networks.Apply(batch)
	n.endpoints.Apply(batch)
	n.services.Apply(batch)
}

// tenantOf finds the tenant of a record; "" while its network is not known.
func (n *Names) tenantOf(e entry) string {
	if !e.ambiguous() {
		return e.tenant
	}
	tenant, _ := n.networks.Get(e.network)
	return tenant
}

func (n *Names) endpointChanged(c objdb.Change[entry]) {
	if c.Was && c.Old.ambiguous() {
		all := n.ambiguous[c.Old.network]
		if delete(all, c.ID); len(all) == 0 {
			delete(n.ambiguous, c.Old.network)
		}
	}
	n.replace(c)
	if c.Is && c.New.ambiguous() {
		if n.ambiguous[c.New.network] == nil {
			n.ambiguous[c.New.network] = map[string]struct{}{}
		}
		n.ambiguous[c.New.network][c.ID] = struct{}{}
	}
}

// replace indexes what a record has become. The old names go first: what has changed must
// leave nothing behind.
func (n *Names) replace(c objdb.Change[entry]) {
	if c.Was {
		n.remove(n.tenantOf(c.Old), c.Key, c.Old)
	}
	if c.Is {
		n.add(n.tenantOf(c.New), c.Key, c.New)
	}
}

// networkChanged notes whose a network is, nobody's if it has gone, and gives the names of
// endpoints that this tells of to the tenant.
func (n *Names) networkChanged(c objdb.Change[string]) {
	old, now := c.Old, c.New // "" without a network
	if old == now {
		return
	}
	if lower := strings.ToLower(old); old != "" {
		if n.known[lower]--; n.known[lower] == 0 {
			delete(n.known, lower)
		}
	}
	if now != "" {
		n.known[strings.ToLower(now)]++
	}
	for endpoint := range n.ambiguous[c.ID] {
		e, _ := n.endpoints.Get(endpoint)
		n.remove(old, state.EndpointRoot+endpoint, e)
		n.add(now, state.EndpointRoot+endpoint, e)
	}
}

// tenantIn finds the tenant that a name within our domain ends with; of several, one being
// the end of the other, the longest. The rest is what comes before it.
func (n *Names) tenantIn(name, own string) (tenant, rest string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for at := 0; ; {
		if t := name[at:]; t == own || n.known[t] > 0 {
			return t, strings.TrimSuffix(name[:at], "."), true
		}
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			return "", "", false
		}
		at += dot + 1
	}
}

// add indexes the names of a record of a tenant; "" is none.
func (n *Names) add(of, key string, e entry) {
	if of == "" {
		return
	}
	t := n.tenants[of]
	if t == nil {
		t = &tenant{nodes: map[string]*node{}, hosts: map[netip.Addr]map[string]string{}}
		n.tenants[of] = t
	}
	for k, names := range e.names {
		for _, name := range names {
			d := t.nodes[name]
			if d == nil {
				d = &node{}
				t.nodes[name] = d
			}
			d.owners++
			put(&d.v4[k], key, e.v4)
			put(&d.v6[k], key, e.v6)
		}
	}
	for _, a := range []netip.Addr{e.v4, e.v6} {
		if a.IsValid() && e.host != "" {
			if t.hosts[a] == nil {
				t.hosts[a] = map[string]string{}
			}
			t.hosts[a][key] = e.host
		}
	}
}

func put(r **ring, owner string, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	if *r == nil {
		*r = &ring{}
	}
	(*r).add(owner, a)
}

// remove takes add back.
func (n *Names) remove(of, key string, e entry) {
	t := n.tenants[of]
	if t == nil {
		return
	}
	for k, names := range e.names {
		for _, name := range names {
			d := t.nodes[name]
			if d.owners--; d.owners == 0 {
				delete(t.nodes, name)
				continue
			}
			for _, r := range []*ring{d.v4[k], d.v6[k]} {
				if r != nil {
					r.remove(key)
				}
			}
		}
	}
	for _, a := range []netip.Addr{e.v4, e.v6} {
		if delete(t.hosts[a], key); len(t.hosts[a]) == 0 {
			delete(t.hosts, a)
		}
	}
	if len(t.nodes)+len(t.hosts) == 0 {
		delete(n.tenants, of)
	}
}

// maxRecords bounds the addresses of one answer.
const maxRecords = 10

// addresses finds up to count addresses of what a name, in lower case, stands for in a
// tenant. known says that there is such a name, with or without an address of the family.
func (n *Names) addresses(tenantName, name string, six bool, count int) (out []netip.Addr, known bool) {
	return n.lookup(tenantName, name, six, count, numKinds)
}

// lookup is addresses among the kinds before one.
func (n *Names) lookup(tenantName, name string, six bool, count int, before kind) (out []netip.Addr, known bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t := n.tenants[tenantName]
	if t == nil || t.nodes[name] == nil {
		return nil, false
	}
	d := t.nodes[name]
	rings := &d.v4
	if six {
		rings = &d.v6
	}
	for k := range before {
		known = known || before == numKinds || d.v4[k].len() > 0 || d.v6[k].len() > 0
		if out = rings[k].take(count); len(out) > 0 {
			break
		}
	}
	return out, known
}

// hostNames finds the names of those who have an address.
func (n *Names) hostNames(tenantName string, a netip.Addr) []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t := n.tenants[tenantName]
	if t == nil {
		return nil
	}
	var out []string
	for _, name := range t.hosts[a] {
		if len(out) == maxRecords {
			break
		}
		out = append(out, name)
	}
	return out
}
