package ovsd

import (
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
)

// policyState is what Inspect shows of rules, in the format of their records.
type policyState struct{ Rules map[string]ruleState }

type ruleState struct{ Rule state.PolicyRule }

// policyState returns the rules. The caller holds mu.
func (d *Driver) policyState() policyState {
	p := policyState{Rules: make(map[string]ruleState, len(d.compiler.Rules))}
	for id, r := range d.compiler.Rules {
		p.Rules[id] = ruleState{asRecord(r)}
	}
	return p
}

func asRecord(r drivers.Rule) state.PolicyRule {
	prefix := func(p netip.Prefix) string {
		switch {
		case !p.IsValid():
			return ""
		case p.IsSingleIP():
			return p.Addr().String()
		}
		return p.String()
	}
	return state.PolicyRule{
		RuleID: r.ID, Priority: int(r.Priority), SrcEndpointGroup: int(r.SrcGroup), DstEndpointGroup: int(r.DstGroup),
		SrcIPAddr: prefix(r.Src), DstIPAddr: prefix(r.Dst), IPProtocol: int(r.Proto), SrcPort: int(r.SrcPort), DstPort: int(r.DstPort),
		TCPFlags: r.Flags, Action: verdictOf(r),
	}
}
