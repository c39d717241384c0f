package ofnet

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
)

// EndpointPolicy makes the connections of an endpoint of this host subject to
// PolicyRuleSets.
type EndpointPolicy struct {
	Endpoint Endpoint // which is local
	// In and Out are the numbers of the rule sets for connections to the endpoint, and
	// for those that it opens; 0: everything is allowed.
	In, Out uint32
}

// PolicyRuleSet lists connections that are allowed; all others are denied. Endpoints with
// the same rules share one set.
type PolicyRuleSet struct {
	ID     string
	Number uint32 // at least LowestPolicyRuleSet; if it changes at a restart, flows are replaced
	Out    bool   // for connections opened by endpoints; otherwise for those to them
	Allows []Allow
}

// LowestPolicyRuleSet is the smallest number of a PolicyRuleSet.
const LowestPolicyRuleSet = 16

// PolicyPeer says which class an address is in, for rule sets that allow classes. An address
// that none tells of is in class 0, which no set allows.
type PolicyPeer struct {
	ID    string
	VRF   uint16 // of the endpoints to which it is a peer
	Addr  netip.Addr
	Class uint32
}

// Allow allows connections with any of the peers to any of the ports.
type Allow struct {
	Peers   []netip.Prefix // masked; empty, and no classes either: everybody
	Classes []uint32       // peers by the class of their address, not 0
	Ports   []PortRange    // empty: everything, also protocols without ports
	// Name is the rule's that says so, for logs; it decides nothing.
	Name string
}

// Everybody reports whether it allows every peer.
func (a Allow) Everybody() bool { return len(a.Peers) == 0 && len(a.Classes) == 0 }

// PortRange is a range of ports of a protocol; 0 to 65535 is the whole protocol.
type PortRange struct {
	Proto     uint8 // TCP, UDP or SCTP
	Low, High uint16
}

// maskedPort matches the ports that equal value in the bits of mask.
type maskedPort struct{ value, mask uint16 }

// narrow adds the ports to a match.
func (p maskedPort) narrow(m of.Match, f of.Field) of.Match {
	switch p.mask {
	case 0:
		return m
	case 0xffff:
		return m.With(f.Is(uint64(p.value)))
	}
	return m.With(f.IsMasked(uint64(p.value), uint64(p.mask)))
}

// masked splits a range into at most 30 masked ports without overlap. Each is the largest
// aligned block that starts where the previous one ended.
func (r PortRange) masked() []maskedPort {
	var out []maskedPort
	for at, end := uint32(r.Low), uint32(r.High)+1; at < end; {
		size := uint32(1) << min(bits.TrailingZeros32(at|1<<16), bits.Len32(end-at)-1)
		out = append(out, maskedPort{uint16(at), uint16(1<<16 - size)})
		at += size
	}
	return out
}

// Equal reports whether two rules are written identically.
func (a Allow) Equal(b Allow) bool {
	return slices.Equal(a.Peers, b.Peers) && slices.Equal(a.Classes, b.Classes) && slices.Equal(a.Ports, b.Ports) && a.Name == b.Name
}

// Fingerprint is a hash of what a set allows, independent of order.
func (s PolicyRuleSet) Fingerprint() (sum uint64) {
	for _, a := range s.Allows {
		sum += Fingerprint(fmt.Sprint(s.Out, struct {
			Peers   []netip.Prefix
			Classes []uint32
			Ports   []PortRange
		}{a.Peers, a.Classes, a.Ports}))
	}
	return sum
}

// Fingerprint is a hash of a text, suitable for sums of hashes.
func Fingerprint(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	// The high bits of FNV hardly depend on the last bytes: mix them (splitmix64).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// GenerationWith is Generation including endpoint policies: extra is the sum of their
// fingerprints. s may be nil, for no rules.
func (s *RuleSet) GenerationWith(extra uint64) uint32 {
	if s != nil {
		extra += s.sum
	}
	return generation(extra)
}
