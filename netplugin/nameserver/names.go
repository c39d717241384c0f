package nameserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"strings"
	"sync"

	"github.com/miekg/dns"
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

// maxLabel is the longest part of a name between dots (RFC 1035 section 2.3.4). Of an id
// that is longer the first characters are taken, as many as Docker shows, and makes the
// host name of a container.
const maxLabel, shortID = 63, 12

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
	log logrus.FieldLogger

	mu      sync.RWMutex
	tenants map[string]*tenant
	entries map[string]entry // by key of the record

	// Names of networks and tenants may have dots, so that an id does not always tell where
	// one ends and the other begins: the record of the network does.
	tenantOf  map[string]string            // by network id
	ambiguous map[string]map[string][]byte // records of endpoints in such networks, by network id and key
	known     map[string]int               // networks by tenant, in lower case
}

// entry is what one record contributes.
type entry struct {
	tenant  string
	network string // id; of endpoints
	v4, v6  netip.Addr
	names   [numKinds][]string
	host    string // the name of its addresses
}

// NewNames makes an empty index.
func NewNames(log logrus.FieldLogger) *Names {
	return &Names{
		log: log, tenants: map[string]*tenant{}, entries: map[string]entry{},
		tenantOf: map[string]string{}, ambiguous: map[string]map[string][]byte{}, known: map[string]int{},
	}
}

// Apply takes in a batch of the state prefix. A snapshot is all there is.
func (n *Names) Apply(batch objdb.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if batch.Snapshot {
		present := make(map[string]struct{}, len(batch.Events))
		for _, ev := range batch.Events {
			present[ev.KV.Key] = struct{}{}
		}
		for key := range n.entries {
			if _, ok := present[key]; !ok {
				n.remove(key)
			}
		}
		for _, records := range n.ambiguous {
			for key := range records {
				if _, ok := present[key]; !ok {
					n.forget(key)
				}
			}
		}
		for id := range n.tenantOf {
			if _, ok := present[state.NetworkRoot+id]; !ok {
				n.setNetwork(id, "")
			}
		}
	}
	for _, ev := range batch.Events {
		if id, ok := strings.CutPrefix(ev.KV.Key, state.NetworkRoot); ok {
			n.network(id, ev)
		}
	}
	for _, ev := range batch.Events {
		if !isNamed(ev.KV.Key) {
			continue
		}
		// The old names go first: what has changed must leave nothing behind.
		n.remove(ev.KV.Key)
		n.forget(ev.KV.Key)
		if !ev.Deleted {
			n.read(ev.KV.Key, ev.KV.Value)
		}
	}
}

// isNamed reports whether a key is that of a record with names.
func isNamed(key string) bool { return readers[prefix(key)] != nil }

// read takes in a record. That of an endpoint whose tenant is not known yet waits for its
// network's.
func (n *Names) read(key string, value []byte) {
	e, err := readers[prefix(key)](value)
	if err != nil {
		n.log.WithError(err).WithField("key", key).Error("a record without readable names is ignored")
		return
	}
	if strings.Count(e.network, ".") > 1 {
		if n.ambiguous[e.network] == nil {
			n.ambiguous[e.network] = map[string][]byte{}
		}
		n.ambiguous[e.network][key] = value
		if e.tenant = n.tenantOf[e.network]; e.tenant == "" {
			return
		}
	}
	n.add(key, e)
}

// forget drops the record of an endpoint whose network's id is ambiguous.
func (n *Names) forget(key string) {
	for id, records := range n.ambiguous {
		if delete(records, key); len(records) == 0 {
			delete(n.ambiguous, id)
		}
	}
}

// network takes in the record of a network.
func (n *Names) network(id string, ev objdb.Event) {
	var rec state.Network
	if !ev.Deleted {
		if err := json.Unmarshal(ev.KV.Value, &rec); err != nil {
			return // the agent complains about it
		}
	}
	n.setNetwork(id, rec.Tenant)
}

// setNetwork notes whose a network is, nobody's if it has gone, and gives its endpoints'
// names to the tenant.
func (n *Names) setNetwork(id, tenant string) {
	old := n.tenantOf[id]
	if old == tenant {
		return
	}
	if old != "" {
		delete(n.tenantOf, id)
		if n.known[strings.ToLower(old)]--; n.known[strings.ToLower(old)] == 0 {
			delete(n.known, strings.ToLower(old))
		}
	}
	if tenant != "" {
		n.tenantOf[id] = tenant
		n.known[strings.ToLower(tenant)]++
	}
	for key, value := range maps.Clone(n.ambiguous[id]) {
		n.remove(key)
		n.read(key, value)
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

// prefix is a key up to the kind of its record.
func prefix(key string) string {
	rest, ok := strings.CutPrefix(key, state.StateRoot)
	if i := strings.IndexByte(rest, '/'); ok && i >= 0 {
		return key[:len(state.StateRoot)+i+1]
	}
	return ""
}

// readers turn records into entries.
var readers = map[string]func([]byte) (entry, error){
	state.EndpointRoot:  readEndpoint,
	state.ServiceLBRoot: readService,
}

func readEndpoint(value []byte) (entry, error) {
	var rec state.Endpoint
	if err := json.Unmarshal(value, &rec); err != nil {
		return entry{}, err
	}
	e := entry{network: rec.NetID}
	_, e.tenant, _ = strings.Cut(rec.NetID, ".")
	e.v4, _ = netip.ParseAddr(rec.IPAddress) // none, or one that no flow leads to either
	e.v6, _ = netip.ParseAddr(rec.IPv6Address)
	grp, _, _ := strings.Cut(rec.EndpointGroupKey, ":")
	e.put(group, grp)
	// Docker writes a slash before names.
	e.put(container, strings.TrimPrefix(rec.EPCommonName, "/"))
	id := cmp.Or(rec.ContainerID, rec.EndpointID)
	if len(id) > maxLabel { // a whole id of a runtime is too long for a label
		id = id[:shortID]
	}
	e.put(containerID, id)
	if rec.EndpointID != rec.ContainerID && len(rec.EndpointID) <= maxLabel && id != rec.EndpointID {
		e.put(containerID, rec.EndpointID)
	}
	for _, names := range [][]string{e.names[container], e.names[containerID]} {
		if e.host == "" && len(names) > 0 {
			e.host = names[0]
		}
	}
	return e, nil
}

func readService(value []byte) (entry, error) {
	var rec state.ServiceLB
	if err := json.Unmarshal(value, &rec); err != nil {
		return entry{}, err
	}
	e := entry{tenant: rec.Tenant}
	e.v4, _ = netip.ParseAddr(rec.IPAddress)
	e.v6, _ = netip.ParseAddr(rec.IPv6Address)
	e.put(service, rec.ServiceName)
	e.host = strings.ToLower(rec.ServiceName)
	return e, nil
}

// put adds a name, if it can be asked for.
func (e *entry) put(k kind, name string) {
	if _, ok := dns.IsDomainName(name); ok && name != "" && name != "." {
		e.names[k] = append(e.names[k], strings.ToLower(name))
	}
}

func (n *Names) add(key string, e entry) {
	t := n.tenants[e.tenant]
	if t == nil {
		t = &tenant{nodes: map[string]*node{}, hosts: map[netip.Addr]map[string]string{}}
		n.tenants[e.tenant] = t
	}
	n.entries[key] = e
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

func (n *Names) remove(key string) {
	e, ok := n.entries[key]
	if !ok {
		return
	}
	delete(n.entries, key)
	t := n.tenants[e.tenant]
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
		delete(n.tenants, e.tenant)
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
