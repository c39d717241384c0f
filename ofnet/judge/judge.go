// Package judge says what rules decide about a connection, and which of them does: the same
// values that the switch's flows are made from, without a switch. It is what explain, preview
// and audit ask. A test holds it to what a real switch does.
package judge

import (
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet"
)

// Connection is the first packet of a connection, as rules see it: behind a service, the
// destination is the provider.
type Connection struct {
	Src, Dst           netip.Addr
	Proto              uint8 // IP protocol; ICMP means that of the addresses' family
	SrcPort, DstPort   uint16
	SrcGroup, DstGroup uint32 // numbers of groups; 0: none
	SrcClass, DstClass uint32 // of the addresses, as peers of policies; 0: none
}

// Verdict is what becomes of a connection. Of two verdicts at the same priority the greater
// counts.
type Verdict int

// The verdicts.
const (
	Allowed Verdict = iota
	Rejected
	Denied
)

// String is allowed, rejected or denied, as in flowapi.Verdict.
func (v Verdict) String() string { return [...]string{"allowed", "rejected", "denied"}[v] }

// Of is what a rule says of a connection that it matches.
func Of(r ofnet.Rule) Verdict {
	switch {
	case r.Reject:
		return Rejected
	case r.Deny:
		return Denied
	}
	return Allowed
}

// Rules returns the verdict of rules, and the index of the rule that decides; -1: none
// matches, which allows. Of several that decide alike it is the first.
func Rules(rules []ofnet.Rule, c Connection) (Verdict, int) {
	verdict, by := Allowed, -1
	for i, r := range rules {
		if !Matches(r, c) {
			continue
		}
		says := Of(r)
		if by < 0 || r.Priority > rules[by].Priority || r.Priority == rules[by].Priority && says > verdict {
			verdict, by = says, i
		}
	}
	return verdict, by
}

// Matches reports whether a rule matches the first packet of a connection. Flags have no
// effect there: see ofnet.Rule.Flags.
func Matches(r ofnet.Rule, c Connection) bool {
	proto, mine := r.Proto, c.proto()
	if proto == of.ProtoICMP && c.Dst.Is6() {
		proto = of.ProtoICMPv6
	}
	ports := proto == of.ProtoTCP || proto == of.ProtoUDP
	switch {
	case r.SrcGroup != 0 && r.SrcGroup != c.SrcGroup, r.DstGroup != 0 && r.DstGroup != c.DstGroup,
		r.Src.IsValid() && !r.Src.Contains(c.Src), r.Dst.IsValid() && !r.Dst.Contains(c.Dst),
		proto != 0 && proto != mine,
		ports && r.SrcPort != 0 && r.SrcPort != c.SrcPort, ports && r.DstPort != 0 && r.DstPort != c.DstPort,
		proto == of.ProtoTCP && !first(r.Flags):
		return false
	}
	return true
}

// first reports whether flags match the first segment of a connection, which has SYN only.
func first(flags string) bool { return flags == "" || flags == "syn" || flags == "syn,!ack" }

func (c Connection) proto() uint8 {
	if c.Proto == of.ProtoICMP && c.Dst.Is6() {
		return of.ProtoICMPv6
	}
	return c.Proto
}

// Set returns the index of the Allow of a set that allows a connection; -1: none does, which
// denies.
func Set(s ofnet.PolicyRuleSet, c Connection) int {
	peer, class := c.Src, c.SrcClass
	if s.Out {
		peer, class = c.Dst, c.DstClass
	}
	return slices.IndexFunc(s.Allows, func(a ofnet.Allow) bool {
		peers := a.Everybody() || class != 0 && slices.Contains(a.Classes, class) || slices.ContainsFunc(a.Peers, func(p netip.Prefix) bool { return p.Contains(peer) })
		ports := len(a.Ports) == 0 || slices.ContainsFunc(a.Ports, func(r ofnet.PortRange) bool {
			return r.Proto == c.Proto && r.Low <= c.DstPort && c.DstPort <= r.High
		})
		return peers && ports
	})
}
