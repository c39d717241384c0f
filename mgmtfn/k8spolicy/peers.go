package k8spolicy

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/contiv/netplugin/ofnet"
)

// found are the peers of a rule. It is shared by sets and must not be changed.
type found struct {
	peers peers
	named map[ofnet.PortRange]peers // egress: the meaning of a name depends on the peer
}

// peers are classes and addresses, each sorted.
type peers struct {
	classes []uint32
	blocks  []netip.Prefix
}

func (p peers) empty() bool { return len(p.classes)+len(p.blocks) == 0 }

func (p peers) sorted() peers {
	slices.Sort(p.classes)
	return peers{slices.Compact(p.classes), sorted(p.blocks)}
}

func (s selection) find(key ruleKey, r Rule) found {
	f := found{named: map[ofnet.PortRange]peers{}}
	if s.out && r.AnyPeer {
		f.name(r.Ports, s.cluster.standsFor(anyPod, "", s.tenant))
	}
	for _, peer := range r.Peers {
		if peer.Blocks != nil {
			f.peers.blocks = append(f.peers.blocks, peer.Blocks...)
			if s.out {
				s.nameWithin(f, r.Ports, peer.Blocks)
			}
			continue
		}
		all := s.cluster.standsFor(peer, key.policy.Namespace, s.tenant)
		for _, m := range all {
			f.peers.classes = append(f.peers.classes, m.number)
		}
		if s.out {
			f.name(r.Ports, all)
		}
	}
	f.peers = f.peers.sorted()
	for port, at := range f.named {
		f.named[port] = at.sorted()
	}
	return f
}

// anyPod matches every pod: the meaning of a rule without peers.
var anyPod = Peer{Namespaces: labels.Everything(), Pods: labels.Everything()}

// name adds the ports that names mean for classes.
func (f found) name(ports []Port, all []member) {
	for _, port := range ports {
		if port.Name == "" {
			continue
		}
		for _, m := range all {
			for _, k := range m.kinds {
				if n, ok := k.port(port.Name, port.Proto); ok {
					at := ofnet.PortRange{Proto: port.Proto, Low: n, High: n}
					now := f.named[at]
					now.classes = append(now.classes, m.number)
					f.named[at] = now
				}
			}
		}
	}
}

// nameWithin adds the ports that names mean for the pods whose addresses are within blocks, by
// these addresses: others of their classes are not.
func (s selection) nameWithin(f found, ports []Port, blocks []netip.Prefix) {
	if !slices.ContainsFunc(ports, func(p Port) bool { return p.Name != "" }) {
		return
	}
	for a, tenants := range s.cluster.classes.at {
		in, ok := tenants[s.tenant]
		if !ok || !slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(a) }) {
			continue
		}
		for _, port := range ports {
			for _, k := range in.kinds {
				if n, ok := k.port(port.Name, port.Proto); ok && port.Name != "" && k.listed {
					at := ofnet.PortRange{Proto: port.Proto, Low: n, High: n}
					now := f.named[at]
					now.blocks = append(now.blocks, netip.PrefixFrom(a, a.BitLen()))
					f.named[at] = now
				}
			}
		}
	}
}
