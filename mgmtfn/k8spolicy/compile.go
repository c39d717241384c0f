package k8spolicy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Result is the policy configuration of a host's pods.
type Result struct {
	EndpointPolicies map[string]drivers.EndpointPolicy // by endpoint id
	Sets             map[string]drivers.PolicyRuleSet  // by id; each is referred to
	Peers            map[PeerAddr]uint32               // classes of addresses; a set allows each of them

	// origins are the classes that there were not at the compilation before, with the one that
	// each was part of then; 0: none, so that an address comes to it by a change of a pod.
	origins map[uint32]uint32
}

// PeerAddr is the address of a pod of a tenant.
type PeerAddr struct {
	Tenant string
	Addr   netip.Addr
}

// Compile returns the policies of this host's pods: pods maps endpoint ids to their pods.
// Unknown pods have no policies.
func (w *ClusterState) Compile(pods map[string]Key) Result {
	w.coarsen()
	w.classify()
	r := Result{EndpointPolicies: map[string]drivers.EndpointPolicy{}, Sets: map[string]drivers.PolicyRuleSet{}, Peers: map[PeerAddr]uint32{}, origins: w.origins()}
	w.remember()
	done := map[ruleKey]found{}
	for id, key := range pods {
		g := drivers.EndpointPolicy{EndpointID: id}
		if p, ok := w.Pod(key); ok {
			policies := w.selecting(p)
			g.In, g.Out = w.set(r.Sets, done, p, policies, false), w.set(r.Sets, done, p, policies, true)
		}
		r.EndpointPolicies[id] = g
	}
	w.addPeers(r.Peers, done)
	return r
}

// addPeers adds the addresses of the classes that rules allow.
func (w *ClusterState) addPeers(peers map[PeerAddr]uint32, done map[ruleKey]found) {
	type of struct {
		tenant string
		class  uint32
	}
	allowed := map[of]bool{}
	for key, f := range done {
		for _, class := range f.peers.classes {
			allowed[of{key.tenant, class}] = true
		}
		for _, named := range f.named {
			for _, class := range named.classes {
				allowed[of{key.tenant, class}] = true
			}
		}
	}
	if len(allowed) == 0 {
		return
	}
	for a, tenants := range w.classes.at {
		for tenant, class := range tenants {
			if allowed[of{tenant, class.number}] {
				peers[PeerAddr{tenant, a}] = class.number
			}
		}
	}
}

// set adds the rule set that policies define for a pod in one direction, and returns its
// id; "" if they do not isolate it.
func (w *ClusterState) set(sets map[string]drivers.PolicyRuleSet, done map[ruleKey]found, p Pod, policies []Policy, out bool) string {
	s := selection{cluster: w, done: done, pod: p, tenant: w.tenant(p), out: out}
	for _, policy := range policies {
		if side := policy.side(out); side.Isolates {
			s.policies = append(s.policies, policy)
		}
	}
	if len(s.policies) == 0 {
		return ""
	}
	id := s.id()
	if _, done := sets[id]; !done {
		sets[id] = drivers.PolicyRuleSet{ID: id, Out: out, Allows: s.allows(), Policies: s.names()}
	}
	return id
}

func (p Policy) side(out bool) Side {
	if out {
		return p.Egress
	}
	return p.Ingress
}

// selection is the policies that isolate a pod in one direction.
type selection struct {
	cluster  *ClusterState
	done     map[ruleKey]found // results so far, of this compilation
	pod      Pod
	tenant   string
	out      bool
	policies []Policy
}

// names are those of the policies.
func (s selection) names() []string {
	out := make([]string, 0, len(s.policies))
	for _, p := range s.policies {
		out = append(out, p.Key.String())
	}
	return out
}

// id names the set of the selection. It does not depend on what policies allow, and is
// different for other sets unless they allow the same: pods of one tenant, in the same
// policies, with the same named ports.
func (s selection) id() string {
	direction := "in"
	if s.out {
		direction = "out"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", direction, s.tenant)
	for _, p := range s.policies {
		fmt.Fprintf(&b, " %s", p.Key)
		if s.out {
			continue
		}
		for _, r := range p.Ingress.Rules {
			for _, port := range r.Ports {
				if n, ok := s.pod.port(port.Name, port.Proto); port.Name != "" && ok {
					fmt.Fprintf(&b, ",%s:%d=%d", port.Name, port.Proto, n)
				}
			}
		}
	}
	return b.String()
}

// allows lists what the policies allow, in a fixed order.
func (s selection) allows() []ofnet.Allow {
	var out []ofnet.Allow
	for _, p := range s.policies {
		for i, r := range p.side(s.out).Rules {
			out = append(out, s.rule(ruleKey{p.Key, s.out, i, s.tenant}, r)...)
		}
	}
	return out
}

// rule omits an Allow without peers and ports, unless it means everything.
func (s selection) rule(key ruleKey, r Rule) []ofnet.Allow {
	f, ok := s.done[key]
	if !ok {
		f = s.find(key, r)
		s.done[key] = f
	}
	ports := s.ports(r)
	var out []ofnet.Allow
	if (r.AnyPeer || !f.peers.empty()) && (r.AnyPort || len(ports) > 0) {
		out = append(out, ofnet.Allow{Peers: f.peers.blocks, Classes: f.peers.classes, Ports: ports, Name: key.name()})
	}
	for _, port := range slices.SortedFunc(maps.Keys(f.named), comparePorts) {
		at := f.named[port]
		out = append(out, ofnet.Allow{Peers: at.blocks, Classes: at.classes, Ports: []ofnet.PortRange{port}, Name: key.name()})
	}
	return out
}

// ruleKey is a rule of a policy, for the pods of a tenant.
type ruleKey struct {
	policy Key
	out    bool
	index  int
	tenant string
}

// name is what logs call the rule: the policy, and where in it the rule is.
func (k ruleKey) name() string {
	side := "ingress"
	if k.out {
		side = "egress"
	}
	return fmt.Sprintf("%s %s[%d]", k.policy, side, k.index)
}

// ports are those of a rule that do not depend on the peer.
func (s selection) ports(r Rule) []ofnet.PortRange {
	var out []ofnet.PortRange
	for _, port := range r.Ports {
		switch n, ok := s.pod.port(port.Name, port.Proto); {
		case port.Name == "":
			out = append(out, ofnet.PortRange{Proto: port.Proto, Low: port.Low, High: port.High})
		case ok && !s.out:
			out = append(out, ofnet.PortRange{Proto: port.Proto, Low: n, High: n})
		}
	}
	slices.SortFunc(out, comparePorts)
	return slices.Compact(out)
}

func sorted(all []netip.Prefix) []netip.Prefix {
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(all)
}

func comparePorts(a, b ofnet.PortRange) int {
	return cmp.Or(cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High))
}

func compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
