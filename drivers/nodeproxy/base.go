package nodeproxy

import (
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/knftables"
)

// Table is the name of our nftables table, of the family inet.
const Table = "contiv-services"

// verdictMaps are the maps, with their types. A gate is looked at before translation.
var verdictMaps = []struct{ name, kind string }{
	{"services4", "ipv4_addr . inet_proto . inet_service : verdict"},
	{"services6", "ipv6_addr . inet_proto . inet_service : verdict"},
	{"nodeports4", "inet_proto . inet_service : verdict"},
	{"nodeports6", "inet_proto . inet_service : verdict"},
	{"gates4", "ipv4_addr . inet_proto . inet_service : verdict"},
	{"gates6", "ipv6_addr . inet_proto . inet_service : verdict"},
	{"nodegates4", "inet_proto . inet_service : verdict"},
	{"nodegates6", "inet_proto . inet_service : verdict"},
}

// baseChain is a chain that is always there.
type baseChain struct {
	name  string
	hook  *knftables.BaseChainHook // nil: none
	kind  knftables.BaseChainType
	prio  knftables.BaseChainPriority
	rules []string
}

// baseChains are the chains that are always there.
func baseChains(subnets []netip.Prefix) []baseChain {
	const atNode = "fib daddr type local "
	lookUp := func(frontends, node, state string) []string {
		return []string{
			state + "ip daddr . meta l4proto . th dport vmap @" + frontends + "4",
			state + "ip6 daddr . meta l4proto . th dport vmap @" + frontends + "6",
			state + "ip daddr != 127.0.0.0/8 " + atNode + "meta l4proto . th dport vmap @" + node + "4",
			state + "ip6 daddr != ::1 " + atNode + "meta l4proto . th dport vmap @" + node + "6",
		}
	}
	gates, frontends := lookUp("gates", "nodegates", "ct state new "), lookUp("services", "nodeports", "")
	at := func(h knftables.BaseChainHook) *knftables.BaseChainHook { return &h }
	var unknown []string // what no frontend has translated
	for _, s := range subnets {
		unknown = append(unknown, fmt.Sprintf("%s daddr %s goto refusal", familyOf(s.Addr()).header, s))
	}
	return []baseChain{
		{name: "refusal", rules: []string{"meta l4proto tcp reject with tcp reset", "reject"}},
		{name: "silence", rules: []string{"drop"}},
		{"gates-in", at(knftables.PreroutingHook), knftables.FilterType, "dstnat - 10", gates},
		{"gates-out", at(knftables.OutputHook), knftables.FilterType, "-110", gates},
		{"frontends-in", at(knftables.PreroutingHook), knftables.NATType, knftables.DNATPriority, frontends},
		{"frontends-out", at(knftables.OutputHook), knftables.NATType, "-100", frontends},
		{"unknown-forward", at(knftables.ForwardHook), knftables.FilterType, "filter - 5", unknown},
		{"unknown-out", at(knftables.OutputHook), knftables.FilterType, "-5", unknown},
		{"sources", at(knftables.PostroutingHook), knftables.NATType, knftables.SNATPriority, []string{
			fmt.Sprintf("meta mark & %#x == 0 return", markBit),
			fmt.Sprintf("meta mark set meta mark & %#x", ^uint32(markBit)),
			// Between containers it is the host's rules that translate (package hostnet), so
			// that nobody passes for the host. Whoever else is there has no way back but to this node.
			"oifname != @inside masquerade fully-random",
		}},
	}
}

// base adds what is always there to a transaction. The table must not be there.
func base(tx *knftables.Transaction, cfg Config) {
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("Services at this node, made by netplugin")})
	tx.Add(&knftables.Set{Name: "inside", Type: "ifname", Comment: knftables.PtrTo("links to containers")})
	for _, link := range cfg.Inside {
		tx.Add(&knftables.Element{Set: "inside", Key: []string{fmt.Sprintf("%q", link)}})
	}
	for _, m := range verdictMaps {
		tx.Add(&knftables.Map{Name: m.name, Type: m.kind})
	}
	chains := baseChains(cfg.Subnets)
	for _, c := range chains {
		chain := &knftables.Chain{Name: c.name}
		if c.hook != nil {
			chain.Hook, chain.Type, chain.Priority = c.hook, &c.kind, &c.prio
		}
		tx.Add(chain)
	}
	for _, c := range chains {
		for _, r := range c.rules {
			tx.Add(&knftables.Rule{Chain: c.name, Rule: r})
		}
	}
	tx.Add(&knftables.Chain{Name: edition(cfg)})
}

// edition is the name of an empty chain that tells what base is there.
func edition(cfg Config) string {
	return name("edition", fmt.Sprint(verdictMaps), fmt.Sprint(describe(baseChains(cfg.Subnets))), strings.Join(cfg.Inside, " "))
}

func describe(chains []baseChain) (out []string) {
	for _, c := range chains {
		hook := ""
		if c.hook != nil {
			hook = fmt.Sprint(*c.hook, " ", c.kind, " ", c.prio)
		}
		out = append(out, c.name, hook, strings.Join(c.rules, "\n"))
	}
	return out
}
