package hostnet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"
)

// The chains of the table.
const (
	postrouting = "postrouting"
	forward     = "forward"
	input       = "input"
	prerouting  = "prerouting"
)

var chains = []string{postrouting, forward, input, prerouting}

// rule is one rule in nftables' language (nft(8)).
type rule struct{ chain, text string }

func (n NAT) rule() rule {
	family := "ip"
	if n.To.Is6() || n.From.Addr().Is6() {
		family = "ip6"
	}
	inside := quoted(n.Inside)
	if n.To.IsValid() {
		sender := map[Sender]string{
			ThisHost: "meta iif 0 ", Others: "meta iif != 0 ", Containers: fmt.Sprintf("iifname { %s } ", strings.Join(inside, ", ")),
		}[n.Sender]
		return rule{postrouting, fmt.Sprintf("oifname %q %s%s saddr != %s snat %s to %s", n.Out, sender, family, n.To, family, n.To)}
	}
	return rule{postrouting, fmt.Sprintf("oifname != { %s } %s saddr %s masquerade", strings.Join(inside, ", "), family, n.From)}
}

// rules are the plan's rules in their order.
func (p Plan) rules() []rule {
	var out []rule
	for _, n := range p.NAT {
		out = append(out, n.rule())
	}
	for _, link := range p.Deaf {
		out = append(out, rule{prerouting, fmt.Sprintf("iifname %q drop", link)})
	}
	for _, link := range p.Guarded {
		for _, a := range p.Own {
			family := "ip"
			if a.Is6() {
				family = "ip6"
			}
			out = append(out, rule{forward, fmt.Sprintf("oifname %q %s saddr %s drop", link, family, a)})
		}
		out = append(out,
			rule{forward, fmt.Sprintf("oifname %q ct status dnat accept", link)},
			rule{forward, fmt.Sprintf("oifname %q ct state new drop", link)})
	}
	out = append(out, p.closedRules()...)
	// As they are read back.
	slices.SortStableFunc(out, func(a, b rule) int { return slices.Index(chains, a.chain) - slices.Index(chains, b.chain) })
	return out
}

// mark names a rule in its comment, by which it is known again: the kernel's idea of
// its text need not be ours.
func (r rule) mark() string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, r.chain, " ", r.text)
	return fmt.Sprintf("contiv %016x", h.Sum64())
}

// applyRules makes the table's rules those wanted. Connections that are translated
// already go on as they are.
func applyRules(ctx context.Context, want []rule) error {
	nft, err := knftables.New(knftables.InetFamily, Table)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			if len(want) == 0 {
				return nil // without nft there is no table of ours
			}
			return errors.New("translate addresses: nft is missing; install the package nftables")
		}
		return fmt.Errorf("translate addresses: nftables does not work on this host: %w", err)
	}
	have, exists, err := currentRules(ctx, nft)
	if err != nil {
		return err
	}
	var marks []string
	for _, r := range want {
		marks = append(marks, r.mark())
	}
	if exists == (len(want) > 0) && slices.Equal(have, marks) {
		return nil
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{}) // so that there is one to delete
	tx.Delete(&knftables.Table{})
	if len(want) > 0 {
		tx.Add(&knftables.Table{Comment: knftables.PtrTo("addresses of containers, made by netplugin")})
		tx.Add(&knftables.Chain{
			Name: postrouting, Type: knftables.PtrTo(knftables.NATType), Hook: knftables.PtrTo(knftables.PostroutingHook),
			Priority: knftables.PtrTo(knftables.SNATPriority),
		})
		tx.Add(&knftables.Chain{
			Name: forward, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.ForwardHook),
			Priority: knftables.PtrTo(knftables.FilterPriority),
		})
		tx.Add(&knftables.Chain{
			Name: input, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.InputHook),
			Priority: knftables.PtrTo(knftables.FilterPriority),
		})
		tx.Add(&knftables.Chain{
			Name: prerouting, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.PreroutingHook),
			Priority: knftables.PtrTo(knftables.RawPriority),
		})
		for i, r := range want {
			tx.Add(&knftables.Rule{Chain: r.chain, Rule: r.text, Comment: &marks[i]})
		}
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write the nftables table %s: %w", Table, err)
	}
	return nil
}

// currentRules lists the marks of the rules there are.
func currentRules(ctx context.Context, nft knftables.Interface) (marks []string, exists bool, err error) {
	for _, chain := range chains {
		rules, err := nft.ListRules(ctx, chain)
		if knftables.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("read the nftables table %s: %w", Table, err)
		}
		exists = true
		for _, r := range rules {
			text := ""
			if r.Comment != nil {
				text = *r.Comment
			}
			marks = append(marks, text)
		}
	}
	return marks, exists, nil
}

// RemoveRules removes our table, and reports whether there was one. With dryRun it only
// looks.
func RemoveRules(ctx context.Context, dryRun bool) (bool, error) {
	nft, err := knftables.New(knftables.InetFamily, Table)
	if errors.Is(err, exec.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, exists, err := currentRules(ctx, nft)
	if err != nil || !exists || dryRun {
		return exists, err
	}
	return true, applyRules(ctx, nil)
}
