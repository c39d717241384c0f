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

// RuleKind describes rules; the key is tenantName:policyName:ruleId.
func RuleKind() Kind[Rule, NoOper] {
	return Kind[Rule, NoOper]{
		Type:       "rule",
		Collection: "rules",
		key:        func(r *Rule) *string { return &r.Key },
		ident:      func(r *Rule) string { return r.TenantName + ":" + r.PolicyName + ":" + r.RuleID },
		unlink:     func(r *Rule) { r.LinkSets, r.Links = RuleLinkSets{}, RuleLinks{} },
		check:      checkRule,
	}
}

func checkRule(r *Rule, c *checker) {
	c.oneOf("action", r.Action, ActionAllow, ActionDeny, ActionReject)
	c.oneOf("direction", r.Direction, DirectionIn, DirectionOut)
	c.optName("fromEndpointGroup", r.FromEndpointGroup, 64)
	c.match("fromIpAddress", r.FromIPAddress)
	c.optName("fromNetwork", r.FromNetwork, 64)
	c.name("policyName", r.PolicyName, 64)
	c.bound("port", r.Port, 0, 65535)
	if r.Priority == 0 {
		r.Priority = 1
	}
	c.bound("priority", r.Priority, 1, 100)
	_, ok := ProtocolNumber(r.Protocol)
	c.format("protocol", ok)
	c.name("ruleId", r.RuleID, 64)
	c.name("tenantName", r.TenantName, 64)
	c.optName("toEndpointGroup", r.ToEndpointGroup, 64)
	c.match("toIpAddress", r.ToIPAddress)
	c.optName("toNetwork", r.ToNetwork, 64)
	if c.err == nil {
		c.err = checkSides(r)
	}
}

// match wants the address of a rule: nothing, ADDRESS or ADDRESS/LENGTH.
func (c *checker) match(field, v string) {
	_, ok := ParseMatch(v)
	c.format(field, v == "" || ok)
}

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
