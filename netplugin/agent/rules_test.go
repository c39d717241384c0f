package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

func TestRuleRecords(t *testing.T) {
	good := state.PolicyRule{
		RuleID: "blue:web:blue:p:blue:p:1:inRx", Priority: 5, SrcEndpointGroup: 3, DstEndpointGroup: 4,
		SrcIPAddr: "10.1.1.7", DstIPAddr: "10.2.0.0/16", IPProtocol: 6, SrcPort: 1, DstPort: 80, TCPFlags: "syn,!ack", Action: "deny",
	}
	want := drivers.Rule{Tenant: "blue", Rule: ofnet.Rule{
		ID: good.RuleID, Priority: 5, SrcGroup: 3, DstGroup: 4, Src: netip.MustParsePrefix("10.1.1.7/32"), Dst: netip.MustParsePrefix("10.2.0.0/16"),
		Proto: 6, SrcPort: 1, DstPort: 80, Flags: "syn,!ack", Deny: true,
	}}
	if got, err := drivers.RuleOf(good); err != nil || got != want {
		t.Errorf("%+v, %v, expected %+v", got, err, want)
	}
	for text, spoil := range map[string]func(*state.PolicyRule){
		"<tenant>:…":            func(r *state.PolicyRule) { r.RuleID = "x" },
		"1 to 100":              func(r *state.PolicyRule) { r.Priority = 101 },
		"allow, deny or reject": func(r *state.PolicyRule) { r.Action = "log" },
		"numbers from 0":        func(r *state.PolicyRule) { r.SrcEndpointGroup = -1 },
		"0 to 255":              func(r *state.PolicyRule) { r.IPProtocol = 256 },
		"0 to 65535":            func(r *state.PolicyRule) { r.DstPort = 65536 },
		"syn,ack":               func(r *state.PolicyRule) { r.TCPFlags = "fin" },
		"source":                func(r *state.PolicyRule) { r.SrcIPAddr = "10.1" },
		"destination":           func(r *state.PolicyRule) { r.DstIPAddr = "10.1.1.1/40" },
		"expected one family":   func(r *state.PolicyRule) { r.DstIPAddr = "2001:db8::/32" },
	} {
		r := good
		spoil(&r)
		if got, err := drivers.RuleOf(r); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v, %v, expected an error with %q", got, err, text)
		}
	}
}

func TestRulesAreDeclaredAndTakenBack(t *testing.T) {
	store := memory.New()
	put(t, store, state.GlobalKey, global)
	rule := func(i int) state.PolicyRule {
		return state.PolicyRule{RuleID: fmt.Sprintf("default:g:default:p:default:p:%d:inRx", i), Priority: 1, DstEndpointGroup: i, Action: "deny"}
	}
	for i := 1; i < 4; i++ {
		put(t, store, state.PolicyRuleRoot+rule(i).RuleID, rule(i))
	}
	_, d, _ := start(t, store)
	groups := func() string {
		var out []uint32
		for i := 1; i < 5; i++ {
			if r, ok := maps.Clone(d.State().Rules)[rule(i).RuleID]; ok {
				out = append(out, r.DstGroup)
			}
		}
		return fmt.Sprint(out)
	}
	eventually.True(t, "all are declared", func() bool { return groups() == "[1 2 3]" && d.State().Synced[drivers.SourceStore] })
	changed, spoilt := rule(2), rule(3)
	changed.DstEndpointGroup, spoilt.Action = 20, ""
	put(t, store, state.PolicyRuleRoot+changed.RuleID, changed)
	put(t, store, state.PolicyRuleRoot+spoilt.RuleID, spoilt)
	commit(t, store, objdb.Delete(state.PolicyRuleRoot+rule(1).RuleID))
	eventually.True(t, "changed; unreadable and deleted ones are gone", func() bool { return groups() == "[20]" })
}
