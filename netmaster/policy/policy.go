// Package policy turns rules of users into the rule records that agents enforce.
//
// A rule of a policy is expanded once for each group under the policy. One rule gives
// one record for the direction it is about, and, when it names a TCP or UDP port, a
// second one for the answers:
//
//	in   inRx: remote → group, destination port    inTx: group → remote, source port
//	out  outTx: group → remote, destination port   outRx: remote → group, source port
//
// A network with an IPv6 subnet has the same again for that, under names that end in 6.
//
// Expansion is a pure function, so what the store should hold can be computed again
// from rules and groups at any time.
package policy

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
)

// Numbers of protocols with ports (IANA protocol numbers).
const (
	tcp = 6
	udp = 17
)

// connectionStart are the flags of a connection's first segment (RFC 9293 section
// 3.5). A TCP rule without port is about who may open connections.
const connectionStart = "syn,!ack"

// Subject is a rule with everything it names looked up.
type Subject struct {
	Rule *contivmodel.Rule
	// Group is the model key of the group under the policy, Number its number.
	Group  string
	Number int
	// Remote is the number of the group that the rule names; 0 if it names none.
	Remote int
	// Network and Network6 are the subnets of the network that the rule names, as CIDR;
	// empty if it names none, or one without IPv6.
	Network, Network6 string
	// Audit: the rule decides nothing.
	Audit bool
	// AuditFile: what it decides goes to the hosts' audit files.
	AuditFile bool
}

// Names returns the last parts that ids of records of a rule may have.
func Names() []string {
	return []string{"inRx", "inTx", "outRx", "outTx", "inRx" + six, "inTx" + six, "outRx" + six, "outTx" + six}
}

// six ends the names of records that are about a network's IPv6 subnet.
const six = "6"

// RuleID is the id of a record: the group's and the policy's keys, the rule's key and
// a name.
func RuleID(group string, r *contivmodel.Rule, name string) string {
	return group + ":" + r.TenantName + ":" + r.PolicyName + ":" + r.Key + ":" + name
}

// Expand returns the records of a rule for one group.
func Expand(s Subject) []state.PolicyRule {
	records := expand(s, s.Network, "")
	if s.Network6 != "" && s.Rule.ToIPAddress == "" && s.Rule.FromIPAddress == "" {
		records = append(records, expand(s, s.Network6, six)...)
	}
	return records
}

// expand returns the records whose names have an ending; network is the subnet on the
// other side, if the rule names one.
func expand(s Subject, network, ending string) []state.PolicyRule {
	r := s.Rule
	proto, _ := contivmodel.ProtocolNumber(r.Protocol) // has been checked
	answers := (proto == tcp || proto == udp) && r.Port != 0
	flags := ""
	if proto == tcp && r.Port == 0 {
		flags = connectionStart
	}
	record := func(name string) state.PolicyRule {
		rec := state.PolicyRule{RuleID: RuleID(s.Group, r, name+ending), Priority: r.Priority, IPProtocol: proto, Action: r.Action, AuditFile: s.AuditFile}
		if s.Audit {
			rec.Mode = contivmodel.ModeAudit
		}
		return rec
	}
	local, remote := address(r.ToIPAddress), network
	names := []string{"inRx", "inTx"}
	if r.Direction == contivmodel.DirectionOut {
		names = []string{"outTx", "outRx"}
		local = ""
		remote = first(address(r.ToIPAddress), remote)
	} else {
		remote = first(address(r.FromIPAddress), remote)
	}
	// Both records of a direction mirror each other.
	toGroup := func(rec state.PolicyRule) state.PolicyRule {
		rec.SrcEndpointGroup, rec.DstEndpointGroup = s.Remote, s.Number
		rec.SrcIPAddr, rec.DstIPAddr = remote, local
		return rec
	}
	fromGroup := func(rec state.PolicyRule) state.PolicyRule {
		rec.SrcEndpointGroup, rec.DstEndpointGroup = s.Number, s.Remote
		rec.SrcIPAddr, rec.DstIPAddr = local, remote
		return rec
	}
	there, back := toGroup, fromGroup
	if r.Direction == contivmodel.DirectionOut {
		there, back = fromGroup, toGroup
	}
	request := there(record(names[0]))
	request.DstPort, request.TCPFlags = r.Port, flags
	if !answers {
		return []state.PolicyRule{request}
	}
	answer := back(record(names[1]))
	answer.SrcPort = r.Port
	return []state.PolicyRule{request, answer}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// address writes the address of a rule as agents expect it: a masked prefix, or an
// address without length when it is just one.
func address(s string) string {
	p, ok := contivmodel.ParseMatch(s)
	switch {
	case !ok:
		return ""
	case p.IsSingleIP():
		return p.Addr().String()
	}
	return p.String()
}
