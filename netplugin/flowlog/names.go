package flowlog

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// names is what addresses and numbers mean. It is safe for concurrent use.
type names struct {
	podAt func(tenant string, a netip.Addr) string // nil: there are no pods

	mu        sync.RWMutex
	networks  objdb.Mirror[network]
	endpoints objdb.Mirror[endpoint]
	hosts     objdb.Mirror[state.Host]
	byAddr    map[netip.Addr][]string // endpoint ids, the newest last
	hostAt    map[netip.Addr]string

	rules    map[uint32]decider // by number; also of some that are gone
	gone     []uint32           // of these, the oldest first
	book     ruleBook
	declared map[string]uint32 // number by rule id
	policies map[string]drivers.EndpointPolicy
	sets     map[string]drivers.PolicyRuleSet
	services map[serviceAt]string
	frontend map[string][]serviceAt // by service id
}

type network struct{ Tenant, Name string }

// endpoint is what records say of one.
type endpoint struct {
	end    flowapi.End // without address and port
	v4, v6 netip.Addr
	netID  string
	group  uint32 // number; 0: none
}

type serviceAt struct {
	tenant string // empty: all
	proto  uint8
	addr   netip.AddrPort
}

// decider is what a number stands for.
type decider struct {
	by, policy, rule string
	audited          bool // what it decides goes to the audit file
}

// keptNames limits the rules whose names are kept after they are gone.
const keptNames = 4096

func newNames(podAt func(tenant string, a netip.Addr) string) *names {
	n := &names{
		podAt:  podAt,
		byAddr: map[netip.Addr][]string{}, hostAt: map[netip.Addr]string{}, rules: map[uint32]decider{}, book: newRuleBook(),
		declared: map[string]uint32{}, policies: map[string]drivers.EndpointPolicy{}, sets: map[string]drivers.PolicyRuleSet{},
		services: map[serviceAt]string{}, frontend: map[string][]serviceAt{},
	}
	n.networks = objdb.Mirror[network]{Prefix: state.NetworkRoot, Decode: readNetwork, Changed: func(objdb.Change[network]) {}}
	n.endpoints = objdb.Mirror[endpoint]{Prefix: state.EndpointRoot, Decode: readEndpoint, Changed: n.endpointChanged}
	n.hosts = objdb.Mirror[state.Host]{Prefix: state.HostRoot, Changed: n.hostChanged}
	return n
}

func readNetwork(value []byte) (network, error) {
	var rec state.Network
	err := json.Unmarshal(value, &rec)
	return network{rec.Tenant, rec.NetworkName}, err
}

func readEndpoint(value []byte) (endpoint, error) {
	var rec state.Endpoint
	if err := json.Unmarshal(value, &rec); err != nil {
		return endpoint{}, err
	}
	e := endpoint{netID: rec.NetID, group: uint32(rec.EndpointGroupID), end: flowapi.End{
		Endpoint: rec.ID, Name: nameOf(rec), Group: rec.ServiceName, Host: rec.HomingHost,
	}}
	e.v4, _ = netip.ParseAddr(rec.IPAddress) // without one, it is not valid
	e.v6, _ = netip.ParseAddr(rec.IPv6Address)
	return e, nil
}

// nameOf is the pod's or the container's name; without one, its id.
func nameOf(rec state.Endpoint) string {
	if rec.EPCommonName != "" {
		return strings.TrimPrefix(rec.EPCommonName, "/") // as dockerd has it
	}
	return rec.EndpointID
}

// Apply takes in a batch of the state prefix.
func (n *names) apply(b objdb.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.networks.Apply(b)
	n.endpoints.Apply(b)
	n.hosts.Apply(b)
}

func (n *names) endpointChanged(c objdb.Change[endpoint]) {
	for _, a := range []netip.Addr{c.Old.v4, c.Old.v6} {
		if c.Was && a.IsValid() {
			if n.byAddr[a] = without(n.byAddr[a], c.ID); len(n.byAddr[a]) == 0 {
				delete(n.byAddr, a)
			}
		}
	}
	for _, a := range []netip.Addr{c.New.v4, c.New.v6} {
		if c.Is && a.IsValid() {
			n.byAddr[a] = append(n.byAddr[a], c.ID)
		}
	}
}

func without(list []string, id string) []string {
	out := list[:0]
	for _, other := range list {
		if other != id {
			out = append(out, other)
		}
	}
	return out
}

func (n *names) hostChanged(c objdb.Change[state.Host]) {
	each := func(h state.Host, do func(netip.Addr)) {
		for _, text := range append([]string{h.VtepIP, h.CtrlIP}, h.Addresses...) {
			if a, err := netip.ParseAddr(text); err == nil {
				do(a.Unmap())
			}
		}
	}
	if c.Was {
		each(c.Old, func(a netip.Addr) { delete(n.hostAt, a) })
	}
	if c.Is {
		each(c.New, func(a netip.Addr) { n.hostAt[a] = c.ID })
	}
}

// endAt says who has an address. The tenant is left out if it is the one asked for.
func (n *names) endAt(tenant string, at netip.AddrPort) flowapi.End {
	return n.asPod(tenant, at.Addr(), n.endpointAt(tenant, at))
}

// asPod gives an end that is a pod the pod's name. own is its address. The list of pods has a
// lock of its own, under which objects are declared: mu must not be held.
func (n *names) asPod(tenant string, own netip.Addr, e flowapi.End) flowapi.End {
	if n.podAt == nil || e.Endpoint == "" || !own.IsValid() {
		return e
	}
	if e.Tenant != "" {
		tenant = e.Tenant
	}
	if pod := n.podAt(tenant, own); pod != "" {
		e.Name = pod
	}
	return e
}

func (n *names) endpointAt(tenant string, at netip.AddrPort) flowapi.End {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, id := range slices.Backward(n.byAddr[at.Addr()]) {
		e, _ := n.endpoints.Get(id)
		if net, _ := n.networks.Get(e.netID); net.Tenant == tenant {
			return n.end(id, tenant, at)
		}
	}
	return flowapi.End{Address: at.Addr(), Port: at.Port(), Host: n.hostAt[at.Addr()]}
}

// endOf describes an endpoint that has sent from an address, be it its own or not.
func (n *names) endOf(id, tenant string, at netip.AddrPort) flowapi.End {
	n.mu.RLock()
	e, _ := n.endpoints.Get(id)
	end := n.end(id, tenant, at)
	n.mu.RUnlock()
	own := e.v4 // what it has sent from may be forged
	if !own.IsValid() {
		own = e.v6
	}
	return n.asPod(tenant, own, end)
}

func (n *names) end(id, tenant string, at netip.AddrPort) flowapi.End {
	e, _ := n.endpoints.Get(id)
	end := e.end
	net, _ := n.networks.Get(e.netID)
	end.Endpoint, end.Address, end.Port, end.Network = id, at.Addr(), at.Port(), net.Name
	if net.Tenant != tenant {
		end.Tenant = net.Tenant
	}
	return end
}

// decider says what a number in a label means.
func (n *names) decider(number uint32) (decider, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	d, ok := n.rules[number]
	return d, ok
}

// policed reports whether rules or policies decide about connections of a tenant between
// these endpoints.
func (n *names) policed(tenant, src, dst string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, out := n.policies[src]
	_, in := n.policies[dst]
	return out || in || n.book.enforced(tenant)
}

// isolating names the NetworkPolicies that isolate an endpoint in a direction.
func (n *names) isolating(id string, out bool) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	p := n.policies[id]
	set := p.In
	if out {
		set = p.Out
	}
	return strings.Join(n.sets[set].Policies, ", ")
}

// service names the service at an address.
func (n *names) service(tenant string, proto uint8, at netip.AddrPort) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if name, ok := n.services[serviceAt{tenant, proto, at}]; ok {
		return name
	}
	return n.services[serviceAt{"", proto, at}]
}

// declare takes in an object that the driver is told of.
func (n *names) declare(o drivers.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch o := o.(type) {
	case drivers.Rule:
		n.book.set(o)
		number := ofnet.NumberOf(o.ID)
		by := ruleOf(o.ID)
		by.audited = o.AuditFile
		n.declared[o.ID], n.rules[number] = number, by
	case drivers.PolicyRuleSet:
		n.sets[o.ID] = o
		for _, a := range o.Allows {
			if a.Name != "" {
				policy, rule, _ := strings.Cut(a.Name, " ")
				n.rules[ofnet.NumberOf(a.Name)] = decider{by: flowapi.ByNetworkPolicy, policy: policy, rule: rule}
			}
		}
	case drivers.EndpointPolicy:
		n.policies[o.EndpointID] = o
	case drivers.Service:
		n.withdrawService(o.ID)
		n.declareService(o)
	}
}

// withdraw takes back an object. The names of rules stay for a while.
func (n *names) withdraw(k drivers.Kind, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch k {
	case drivers.KindRule:
		if number, known := n.declared[id]; known {
			tenant, _, _ := strings.Cut(id, ":")
			n.book.remove(id, tenant)
			delete(n.declared, id)
			n.forgetLater(number)
		}
	case drivers.KindPolicyRuleSet:
		for _, a := range n.sets[id].Allows {
			n.forgetLater(ofnet.NumberOf(a.Name))
		}
		delete(n.sets, id)
	case drivers.KindEndpointPolicy:
		delete(n.policies, id)
	case drivers.KindService:
		n.withdrawService(id)
	}
}

// forgetLater keeps the name of a rule that is gone, but not of too many.
func (n *names) forgetLater(number uint32) {
	if n.gone = append(n.gone, number); len(n.gone) <= keptNames {
		return
	}
	oldest := n.gone[0]
	n.gone = n.gone[1:]
	if !n.inUse(oldest) {
		delete(n.rules, oldest)
	}
}

func (n *names) inUse(number uint32) bool {
	for _, d := range n.declared {
		if d == number {
			return true
		}
	}
	for _, s := range n.sets {
		for _, a := range s.Allows {
			if ofnet.NumberOf(a.Name) == number {
				return true
			}
		}
	}
	return false
}

func (n *names) declareService(s drivers.Service) {
	name := s.ID
	if s.Tenant != "" {
		name = strings.TrimSuffix(s.ID, ":"+s.Tenant)
	}
	for _, vip := range s.VIPs {
		for _, p := range s.Ports {
			at := serviceAt{s.Tenant, p.Proto, netip.AddrPortFrom(vip, p.Port)}
			n.services[at] = name
			n.frontend[s.ID] = append(n.frontend[s.ID], at)
		}
	}
}

func (n *names) withdrawService(id string) {
	for _, at := range n.frontend[id] {
		delete(n.services, at)
	}
	delete(n.frontend, id)
}

// ruleOf reads the id of a rule's record. One that is not netmaster's stands for itself.
func ruleOf(id string) decider {
	policy, rule := state.PolicyRule{RuleID: id}.Names()
	if policy == "" {
		return decider{by: flowapi.ByRule, policy: id}
	}
	return decider{by: flowapi.ByRule, policy: policy, rule: rule}
}
