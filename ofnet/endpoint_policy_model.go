package ofnet

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
)

// EndpointPolicy holds the connections of an endpoint of this host to what PolicyRuleSets say.
type EndpointPolicy struct {
	Endpoint Endpoint // which is local
	// In and Out are the numbers of the sets for connections to the endpoint, and for
	// those that it opens; 0: everything is allowed.
	In, Out uint32
}

// PolicyRuleSet lists connections that are allowed; all others are denied. Endpoints that
// are allowed the same share one.
type PolicyRuleSet struct {
	ID     string
	Number uint32 // at least LowestPolicyRuleSet; the same after a restart, or flows are renewed
	Out    bool   // for connections that endpoints open; else for those to them
	Allows []Allow
}

// LowestPolicyRuleSet is the smallest number of an PolicyRuleSet.
const LowestPolicyRuleSet = 16

// Allow allows connections with any of the peers at any of the ports of who is asked.
type Allow struct {
	Peers []netip.Prefix // masked; empty: everybody
	Ports []PortRange    // empty: everything, also what has no ports
}

// PortRange is a range of ports of a protocol; 0 to 65535 is all of the protocol.
type PortRange struct {
	Proto     uint8 // TCP, UDP or SCTP
	Low, High uint16
}

// maskedPort matches the ports that agree with value in the bits of mask.
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

// masked covers a range by at most 30 masked ports, none of them twice. Each is the
// largest aligned block that begins where the one before ended.
func (r PortRange) masked() []maskedPort {
	var out []maskedPort
	for at, end := uint32(r.Low), uint32(r.High)+1; at < end; {
		size := uint32(1) << min(bits.TrailingZeros32(at|1<<16), bits.Len32(end-at)-1)
		out = append(out, maskedPort{uint16(at), uint16(1<<16 - size)})
		at += size
	}
	return out
}

// Equal reports whether two sets say the same in the same words.
func (a Allow) Equal(b Allow) bool {
	return slices.Equal(a.Peers, b.Peers) && slices.Equal(a.Ports, b.Ports)
}

// Fingerprint is a number for what a set allows, whatever the order.
func (s PolicyRuleSet) Fingerprint() (sum uint64) {
	for _, a := range s.Allows {
		sum += Fingerprint(fmt.Sprint(s.Out, a))
	}
	return sum
}

// Fingerprint is a number for a text, such that sums of them hardly ever agree.
func Fingerprint(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	// FNV's high bits hardly depend on the last bytes: spread them (splitmix64).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// GenerationWith is Generation where endpoint policies decide as well: extra sums up the
// fingerprints of theirs. s may be nil, for no rules.
func (s *RuleSet) GenerationWith(extra uint64) uint32 {
	if s != nil {
		extra += s.sum
	}
	return generation(extra)
}
