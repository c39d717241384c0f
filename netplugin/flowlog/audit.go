package flowlog

import (
	"net/netip"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/judge"
	"github.com/contiv/netplugin/state/flowapi"
)

// ruleBook is the rules of each tenant, enforced and in audit mode. Rules in audit mode are
// not in the switch: what they would decide is found out here.
type ruleBook struct {
	byTenant map[string]map[string]drivers.Rule // by id
	audits   map[string]int                     // rules in audit mode, by tenant
	lists    map[string]ruleList                // of byTenant, until that changes
}

// ruleList is a tenant's rules, as they are evaluated, and whether each is in audit mode.
type ruleList struct {
	rules []ofnet.Rule
	audit []bool
}

func newRuleBook() ruleBook {
	return ruleBook{byTenant: map[string]map[string]drivers.Rule{}, audits: map[string]int{}, lists: map[string]ruleList{}}
}

// set adds a rule or replaces it.
func (b *ruleBook) set(r drivers.Rule) {
	b.remove(r.ID, r.Tenant)
	if b.byTenant[r.Tenant] == nil {
		b.byTenant[r.Tenant] = map[string]drivers.Rule{}
	}
	b.byTenant[r.Tenant][r.ID] = r
	delete(b.lists, r.Tenant)
	if r.Audit {
		b.audits[r.Tenant]++
	}
}

func (b *ruleBook) remove(id, tenant string) {
	r, known := b.byTenant[tenant][id]
	if !known {
		return
	}
	delete(b.lists, tenant)
	if delete(b.byTenant[tenant], id); len(b.byTenant[tenant]) == 0 {
		delete(b.byTenant, tenant)
	}
	if r.Audit {
		if b.audits[tenant]--; b.audits[tenant] == 0 {
			delete(b.audits, tenant)
		}
	}
}

// enforced reports whether rules of a tenant decide.
func (b *ruleBook) enforced(tenant string) bool { return len(b.byTenant[tenant]) > b.audits[tenant] }

// audit returns the rule in audit mode that would decide about a connection if all rules were
// enforced; ok is false if none would.
func (b *ruleBook) audit(tenant string, c judge.Connection) (r ofnet.Rule, ok bool) {
	if b.audits[tenant] == 0 {
		return r, false
	}
	list := b.list(tenant)
	if _, by := judge.Rules(list.rules, c); by >= 0 && list.audit[by] {
		return list.rules[by], true
	}
	return r, false
}

func (b *ruleBook) list(tenant string) ruleList {
	list, known := b.lists[tenant]
	if !known {
		for _, r := range b.byTenant[tenant] {
			list.rules, list.audit = append(list.rules, r.Rule), append(list.audit, r.Audit)
		}
		b.lists[tenant] = list
	}
	return list
}

// audit says what rules in audit mode would have decided about a connection, and counts it;
// nothing if that is what has been decided.
func (l *Log) audit(s shared, proto uint8, src, dst netip.AddrPort, from, to flowapi.End, n uint32, now time.Time) flowapi.Decision {
	c := judge.Connection{Src: src.Addr(), Dst: dst.Addr(), Proto: proto}
	if !ofnet.IsICMP(proto) {
		c.SrcPort, c.DstPort = src.Port(), dst.Port()
	}
	r, ok := l.names.audit(s.tenant, c, from, to)
	if !ok {
		return flowapi.Decision{}
	}
	by := ruleOf(r.ID)
	d := flowapi.Decision{Host: l.cfg.Host, At: l.place(from, to), By: by.by, Policy: by.policy, Rule: by.rule, Verdict: flowapi.Verdict(judge.Of(r).String())}
	l.hits.count(s.tenant, d, true, n, now)
	if d.Verdict == s.verdict {
		return flowapi.Decision{}
	}
	return d
}

// audit is that of the rule book, for a connection between two ends.
func (n *names) audit(tenant string, c judge.Connection, from, to flowapi.End) (ofnet.Rule, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.SrcGroup, c.DstGroup = n.groupOf(from), n.groupOf(to)
	return n.book.audit(tenant, c)
}

// groupOf is the number of the group of an end, of the record's tenant. The caller holds mu.
func (n *names) groupOf(e flowapi.End) uint32 {
	if e.Endpoint == "" || e.Tenant != "" {
		return 0
	}
	known, _ := n.endpoints.Get(e.Endpoint)
	return known.group
}
