package ovsd

import (
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
)

// policyPicture is what Inspect shows of rules, in the form of their records.
type policyPicture struct{ Rules map[string]rulePicture }

type rulePicture struct{ Rule state.PolicyRule }

// policyPicture shows the rules. The caller holds mu.
func (d *Driver) policyPicture() policyPicture {
	p := policyPicture{Rules: make(map[string]rulePicture, len(d.rules))}
	for id, r := range d.rules {
		p.Rules[id] = rulePicture{asRecord(r)}
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
