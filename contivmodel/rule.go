package contivmodel

import (
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Rule allows or denies some of the traffic of the groups under a policy. Empty fields
// match everything.
type Rule struct {
	Key               string       `json:"key"`
	Action            string       `json:"action,omitempty"`    // allow | deny | reject: deny, and tell the sender
	Direction         string       `json:"direction,omitempty"` // in | out, seen from the group
	FromEndpointGroup string       `json:"fromEndpointGroup,omitempty"`
	FromIPAddress     string       `json:"fromIpAddress,omitempty"` // ADDRESS or ADDRESS/LENGTH
	FromNetwork       string       `json:"fromNetwork,omitempty"`
	Mode              string       `json:"mode,omitempty"` // enforce | audit; empty: the policy's
	PolicyName        string       `json:"policyName,omitempty"`
	Port              int          `json:"port,omitempty"`     // destination port; 0 = any
	Priority          int          `json:"priority,omitempty"` // 1–100, higher wins
	Protocol          string       `json:"protocol,omitempty"` // tcp | udp | icmp | number
	RuleID            string       `json:"ruleId,omitempty"`
	TenantName        string       `json:"tenantName,omitempty"`
	ToEndpointGroup   string       `json:"toEndpointGroup,omitempty"`
	ToIPAddress       string       `json:"toIpAddress,omitempty"` // ADDRESS or ADDRESS/LENGTH
	ToNetwork         string       `json:"toNetwork,omitempty"`
	LinkSets          RuleLinkSets `json:"link-sets"`
	Links             RuleLinks    `json:"links"`
}

// RuleLinkSets are the policies a rule belongs to: one.
type RuleLinkSets struct {
	Policies LinkSet `json:"Policies,omitempty"`
}

// RuleLinks name the group a rule matches, if it names one.
type RuleLinks struct {
	MatchEndpointGroup Link `json:"MatchEndpointGroup"`
}

// Values of a rule's fields.
const (
	DirectionIn  = "in"
	DirectionOut = "out"
	ActionAllow  = "allow"
	ActionDeny   = "deny"
	ActionReject = "reject"
)

// Values of the mode of rules and policies.
const (
	ModeEnforce = "enforce"
	ModeAudit   = "audit" // decides nothing; the flow log says what it would have decided
)

var modes = []string{ModeEnforce, ModeAudit}

// RuleType names the kind in links, store keys and errors.
const RuleType = "rule"

// RuleKind describes rules; the key is tenantName:policyName:ruleId.
func RuleKind() Kind[Rule, NoOper] {
	return Kind[Rule, NoOper]{
		Type: RuleType, Collection: "rules", names: []string{tenantName, "policyName", "ruleId"}, immutable: true,
		key:     func(r *Rule) *string { return &r.Key },
		unlink:  func(r *Rule) { r.LinkSets, r.Links = RuleLinkSets{}, RuleLinks{} },
		members: ruleFields(),
		check:   checkSides,
	}
}

func ruleFields() []member[Rule] {
	matched := func(r *Rule) *Link { return &r.Links.MatchEndpointGroup }
	return []member[Rule]{
		{
			Field: Field{
				Name: "action", Text: "what to do with matching traffic", Required: true,
				Values: []string{ActionAllow, ActionDeny, ActionReject},
			},
			text: func(r *Rule) *string { return &r.Action },
		},
		{
			Field: Field{
				Name: "direction", Text: "as seen from the groups under the policy", Required: true,
				Values: []string{DirectionIn, DirectionOut},
			},
			text: func(r *Rule) *string { return &r.Direction },
		},
		optionalName(member[Rule]{
			Field: Field{Name: "fromEndpointGroup", Text: "name of the sending group", Refers: EndpointGroupType},
			text:  func(r *Rule) *string { return &r.FromEndpointGroup }, link: matched,
		}, 64),
		{
			Field: Field{Name: "fromIpAddress", Text: "ADDRESS or ADDRESS/LENGTH, IPv4"},
			text:  func(r *Rule) *string { return &r.FromIPAddress }, valid: isMatch,
		},
		optionalName(member[Rule]{
			Field: Field{Name: "fromNetwork", Text: "name of the sending network", Refers: NetworkType},
			text:  func(r *Rule) *string { return &r.FromNetwork },
		}, 64),
		{
			Field: Field{Name: "mode", Text: "audit: decide nothing, log what would have been decided; empty: as the policy", Values: modes},
			text:  func(r *Rule) *string { return &r.Mode },
		},
		name(member[Rule]{
			Field: Field{Name: "policyName", Text: "the policy of the rule", Refers: PolicyType},
			text:  func(r *Rule) *string { return &r.PolicyName },
			links: func(r *Rule) *LinkSet { return &r.LinkSets.Policies },
		}, 64),
		{
			Field:  Field{Name: "port", Text: "destination port; 0 = any", High: 65535},
			number: func(r *Rule) *int { return &r.Port },
		},
		{
			Field:  Field{Name: "priority", Text: "higher wins", Low: 1, High: 100, Default: 1},
			number: func(r *Rule) *int { return &r.Priority },
		},
		{
			Field: Field{Name: "protocol", Text: "tcp, udp, icmp or a number of 0-255; empty = any"},
			text:  func(r *Rule) *string { return &r.Protocol }, valid: isProtocol,
		},
		name(member[Rule]{
			Field: Field{Name: "ruleId", Text: "the rule's name within its policy"},
			text:  func(r *Rule) *string { return &r.RuleID },
		}, 64),
		tenantOf(func(r *Rule) *string { return &r.TenantName }, nil),
		optionalName(member[Rule]{
			Field: Field{Name: "toEndpointGroup", Text: "name of the receiving group", Refers: EndpointGroupType},
			text:  func(r *Rule) *string { return &r.ToEndpointGroup }, link: matched,
		}, 64),
		{
			Field: Field{Name: "toIpAddress", Text: "ADDRESS or ADDRESS/LENGTH, IPv4"},
			text:  func(r *Rule) *string { return &r.ToIPAddress }, valid: isMatch,
		},
		optionalName(member[Rule]{
			Field: Field{Name: "toNetwork", Text: "name of the receiving network", Refers: NetworkType},
			text:  func(r *Rule) *string { return &r.ToNetwork },
		}, 64),
	}
}

func isMatch(s string) bool { _, ok := ParseMatch(s); return ok }

func isProtocol(s string) bool { _, ok := ProtocolNumber(s); return ok }

// ParseMatch reads the address of a rule, ADDRESS or ADDRESS/LENGTH with a length of
// 1–32, and returns the masked prefix; a single address is a /32.
func ParseMatch(s string) (netip.Prefix, bool) {
	host, length, two := strings.Cut(s, "/")
	a, ok := ParseIP4(host)
	n := 32
	if two {
		fine := false
		n, fine = prefixLen(length, 32)
		ok = ok && fine
	}
	if !ok {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, n).Masked(), true
}

// ProtocolNumber reads the protocol of a rule: a name, or a number of up to three
// digits that is no more than 255. Nothing is 0, which matches every protocol.
func ProtocolNumber(s string) (int, bool) {
	switch s {
	case "":
		return 0, true
	case "icmp":
		return 1, true
	case "tcp":
		return 6, true
	case "udp":
		return 17, true
	}
	n, ok := decimal(s, 3)
	return n, ok && n <= 255
}

// checkSides refuses combinations that no packet can match, or that say the same
// thing twice.
func checkSides(r *Rule) error {
	const from, to = "from", "to"
	side, network, group, address := from, r.FromNetwork, r.FromEndpointGroup, r.FromIPAddress
	if r.Direction == DirectionOut {
		side, network, group, address = to, r.ToNetwork, r.ToEndpointGroup, r.ToIPAddress
	}
	switch {
	case r.Direction == DirectionIn && (r.ToNetwork != "" || r.ToEndpointGroup != ""):
		return errs.New(errs.Invalid, "toNetwork and toEndpointGroup are not for direction in: rule %s", r.Key)
	case r.Direction == DirectionOut && (r.FromNetwork != "" || r.FromEndpointGroup != "" || r.FromIPAddress != ""):
		return errs.New(errs.Invalid, "fromNetwork, fromEndpointGroup and fromIpAddress are not for direction out: rule %s", r.Key)
	case network != "" && address != "":
		return errs.New(errs.Invalid, "%sNetwork and %sIpAddress exclude each other: rule %s", side, side, r.Key)
	case network != "" && group != "":
		return errs.New(errs.Invalid, "%sNetwork and %sEndpointGroup exclude each other: rule %s", side, side, r.Key)
	}
	return nil
}
