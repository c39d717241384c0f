package flowlog

import (
	"encoding/json"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// TestAudit: a rule in audit mode decides nothing; records say what it would have decided if it
// is something else, and it has hits of its own.
func TestAudit(t *testing.T) {
	const id = "blue:g-web:blue:next:blue:next:7:inRx"
	h := newHost(t, 0)
	web := state.Endpoint{ID: "net.blue-web", NetID: "net.blue", EndpointID: "web", ServiceName: "g-web", EndpointGroupID: 3, HomingHost: "host1", IPAddress: "10.1.1.1"}
	raw, err := json.Marshal(web)
	if err != nil {
		t.Fatal(err)
	}
	h.Apply(objdb.Batch{Events: []objdb.Event{{KV: objdb.KV{Key: state.EndpointRoot + web.ID, Value: raw}}}})
	rule := drivers.Rule{Tenant: "blue", Audit: true, Rule: ofnet.Rule{ID: id, Priority: 50, Proto: 6, DstGroup: 3, DstPort: 80, Deny: true}}
	h.Declare(rule)

	would := &flowapi.Decision{Host: "host1", At: flowapi.AtBoth, By: flowapi.ByRule, Policy: "next", Rule: "7", Verdict: flowapi.Denied}
	last := func(want *flowapi.Decision) {
		t.Helper()
		all, _ := h.events(flowapi.Filter{})
		r := all[len(all)-1]
		if (r.WouldBe == nil) != (want == nil) || want != nil && *r.WouldBe != *want {
			t.Errorf("%s to %v would be %+v, want %+v", r.Verdict, r.Dst, r.WouldBe, want)
		}
	}
	h.reads(conn(40000, nil))
	last(would)
	other := conn(40001, func(c *drivers.Connection) { c.Dst = at("10.1.1.1:81") }) // the rule is not about this port
	h.reads(conn(40000, nil), other)
	last(nil)

	deny := drivers.Denied{DeniedPacket: ofnet.DeniedPacket{By: ofnet.DeniedByRule, Number: ofnet.NumberOf(denyRule), EthType: 0x0800, Proto: 6, Src: at("10.1.1.2:50000"), Dst: at("10.1.1.1:80")}, Tenant: "blue", Endpoint: "net.blue-app"}
	h.deny(deny)
	last(nil) // denied, and would be
	rule.Deny = false
	h.Declare(rule)
	h.add(joinFor)
	h.deny(deny)
	would.Verdict = flowapi.Allowed
	last(would)
	h.add(joinFor)
	deny.By = ofnet.DeniedBySource // which no rule changes
	h.deny(deny)
	last(nil)

	hits := map[flowapi.Verdict]uint64{}
	_, all := h.Hits()
	for _, hit := range all {
		if hit.Audit {
			hits[hit.Verdict] += hit.Count
		}
	}
	if hits[flowapi.Denied] != 2 || hits[flowapi.Allowed] != 1 {
		t.Errorf("hits in audit mode: %v, want 2 denied and 1 allowed", hits)
	}
	h.Withdraw(drivers.KindRule, id)
	h.reads(conn(40000, nil), other, conn(40002, nil))
	last(nil)
}

// TestOnlyAudit: where all rules are in audit mode, none decides.
func TestOnlyAudit(t *testing.T) {
	b := newRuleBook()
	r := drivers.Rule{Tenant: "blue", Audit: true, Rule: ofnet.Rule{ID: "a"}}
	b.set(r)
	if b.enforced("blue") {
		t.Error("a rule in audit mode is taken for one that decides")
	}
	r.Audit = false
	b.set(r)
	if !b.enforced("blue") || b.audits["blue"] != 0 {
		t.Error("a rule that is enforced now is not taken for one")
	}
	b.remove("a", "blue")
	if len(b.byTenant)+len(b.audits)+len(b.lists) != 0 {
		t.Errorf("%+v is left", b)
	}
}

// TestAudited: what rules of a policy with audit decide is marked, allowed or denied, and
// nothing else; who follows what is audited gets only that.
func TestAudited(t *testing.T) {
	h := newHost(t, 0)
	r, err := h.subscribe(true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.unsubscribe(r)
	denied := func() {
		h.deny(drivers.Denied{DeniedPacket: ofnet.DeniedPacket{By: ofnet.DeniedByRule, Number: ofnet.NumberOf(denyRule), EthType: 0x0800, Proto: 6, Src: at("10.1.1.2:50000"), Dst: at("10.1.1.1:81")}, Tenant: "blue", Endpoint: "net.blue-app"})
	}
	h.reads(conn(40000, nil))
	denied()
	h.add(2 * joinFor)
	h.sweep()
	if all, _ := h.events(flowapi.Filter{Audited: true}); len(all) > 0 || len(r.pending) > 0 {
		t.Errorf("audited without a policy that asks for it: %+v, %d to tell", all, len(r.pending))
	}
	for _, id := range []string{allowRule, denyRule} {
		h.Declare(drivers.Rule{Tenant: "blue", AuditFile: true, Rule: ofnet.Rule{ID: id}})
	}
	h.reads(conn(40000, nil), conn(40001, nil), conn(40002, func(c *drivers.Connection) { c.Rule = 0 }))
	denied()
	all, _ := h.events(flowapi.Filter{Audited: true})
	if len(all) != 2 || all[0].Src.Port != 40001 || !all[0].Audited || all[1].Verdict != flowapi.Denied || len(r.pending) != 2 {
		t.Errorf("%+v, %d to tell", all, len(r.pending))
	}
}
