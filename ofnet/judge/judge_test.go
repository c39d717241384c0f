package judge

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/ofnet"
)

// The rule of the highest priority decides, and at the same priority a silent denial before a
// rejection before an allowance.
func TestWhichRuleDecides(t *testing.T) {
	ping := Connection{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8::2"), Proto: 58, SrcGroup: 1, DstGroup: 2}
	web := Connection{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: 6, DstPort: 80, SrcGroup: 1, DstGroup: 2}
	for name, c := range map[string]struct {
		c       Connection
		rules   []ofnet.Rule
		verdict Verdict
		by      int
	}{
		"none":              {web, nil, Allowed, -1},
		"none matches":      {web, []ofnet.Rule{{Priority: 1, DstGroup: 3, Deny: true}, {Priority: 9, Proto: 17, Deny: true}}, Allowed, -1},
		"higher priority":   {web, []ofnet.Rule{{Priority: 1, Deny: true}, {Priority: 2}}, Allowed, 1},
		"denials win":       {web, []ofnet.Rule{{Priority: 5}, {Priority: 5, Deny: true, Reject: true}, {Priority: 5, Deny: true}}, Denied, 2},
		"rejected":          {web, []ofnet.Rule{{Priority: 5, Deny: true, Reject: true}, {Priority: 5}}, Rejected, 0},
		"the first of two":  {web, []ofnet.Rule{{Priority: 5}, {Priority: 5}}, Allowed, 0},
		"flags of answers":  {web, []ofnet.Rule{{Priority: 5, Proto: 6, Flags: "syn,ack", Deny: true}, {Priority: 1, Proto: 6, Flags: "syn,!ack"}}, Allowed, 1},
		"ICMP of IPv6":      {ping, []ofnet.Rule{{Priority: 5, Proto: 1, Deny: true}}, Denied, 0},
		"the other family":  {ping, []ofnet.Rule{{Priority: 5, Src: netip.MustParsePrefix("0.0.0.0/0"), Deny: true}}, Allowed, -1},
		"ports of no ports": {ping, []ofnet.Rule{{Priority: 5, DstPort: 7, Deny: true}}, Denied, 0},
	} {
		if v, by := Rules(c.rules, c.c); v != c.verdict || by != c.by {
			t.Errorf("%s: verdict %d by %d, expected %d by %d", name, v, by, c.verdict, c.by)
		}
	}
}
