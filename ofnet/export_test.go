package ofnet

import (
	"net/netip"
	"testing"
)

// Connection is a probe, for evaluators that import this package.
type Connection struct {
	Src, Dst           netip.Addr
	Proto              uint8
	SrcPort, DstPort   uint16
	SrcGroup, DstGroup uint32
	SrcClass, DstClass uint32
}

// Evaluator says what is decided about a connection. Verdicts are 0 for allowed, 1 for
// rejected and 2 for denied.
type Evaluator struct {
	Allows func(PolicyRuleSet, Connection) bool
	Judged func([]Rule, Connection) int
}

func (e Evaluator) allows(s PolicyRuleSet, p probe) bool { return e.Allows(s, p.connection()) }

func (e Evaluator) judged(rules []Rule, p probe) verdict {
	return verdict(e.Judged(rules, p.connection()))
}

func (p probe) connection() Connection {
	return Connection{p.src, p.dst, p.proto, p.srcPort, p.dstPort, p.srcGroup, p.dstGroup, p.srcClass, p.dstClass}
}

// Compare holds an evaluator to the switch, over random rules.
func Compare(t *testing.T, e Evaluator) {
	t.Run("rules", func(t *testing.T) { policyAgrees(t, e) })
	t.Run("endpoint policies", func(t *testing.T) { endpointPoliciesAgree(t, e) })
}
