package compiler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/ofnet"
)

// text returns what all owners want: one line per flow, group and meter.
func text(all map[ofnet.Encap]map[string]ofnet.Program) []string {
	var lines []string
	for e, owners := range all {
		for owner, p := range owners {
			for _, f := range p.Flows {
				lines = append(lines, fmt.Sprintf("%s %s %v", e, owner, f))
			}
			for _, g := range p.Groups {
				lines = append(lines, fmt.Sprintf("%s %s %v", e, owner, g))
			}
			for _, m := range p.Meters {
				lines = append(lines, fmt.Sprintf("%s %s %v", e, owner, m))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// bridges are the programs that a compiler's outputs add up to.
type bridges map[ofnet.Encap]map[string]ofnet.Program

func (b bridges) take(out []Output) {
	for _, o := range out {
		for e, owners := range b {
			if p := *o.In(e); p.Empty() {
				delete(owners, o.Owner)
			} else if o.Owner != "" {
				owners[o.Owner] = p
			}
		}
	}
}

// random makes changes, computes now and then, and returns the differences from a fresh
// Compile of the final inputs.
func random(seed uint64, table []dependency, n int) string {
	cfg := testConfig()
	cfg.FlowLog = []ofnet.FlowLog{ofnet.LogOff, ofnet.LogAll, ofnet.LogPoliced}[seed%3]
	r := changes{rand.New(rand.NewPCG(seed, 27)), newCompiler(cfg, Inputs{}, table)}
	b := bridges{ofnet.VLAN: {}, ofnet.VXLAN: {}}
	finish := func() {
		for r.c.Dirty() {
			out, _ := r.c.Step(1000)
			b.take(out)
		}
	}
	for e := range b {
		r.c.SetBridge(e, BridgeState{Round: 1})
	}
	if r.IntN(2) == 0 {
		r.c.SetSynced()
	}
	batch := 1 + r.IntN(20)
	for i := range n {
		if r.change(); i%batch != 0 {
			continue
		}
		switch r.IntN(4) {
		case 0:
			out, _ := r.c.Step(1 + r.IntN(20))
			b.take(out)
		case 1:
			r.relist()
		default:
			finish()
		}
	}
	finish()
	if r.relist(); r.c.Dirty() {
		return "the same declarations again have something computed"
	}
	in := r.c.Inputs
	return cmp.Diff(text(Compile(r.c.cfg, in)), text(b))
}

func seeds(n uint64) uint64 {
	if os.Getenv("CONTIV_LONG") != "" {
		return 100 * n
	}
	return n
}

// Random changes in random order, one by one and in batches, with everything declared again
// in between, end with the programs of a fresh compilation.
func TestIncrementalEqualsFresh(t *testing.T) {
	for seed := range seeds(200) {
		if diff := random(seed, dependencies, 150); diff != "" {
			t.Fatalf("seed %d (-fresh +incremental):\n%s", seed, diff)
		}
	}
}

// The test above notices every missing row of the table; so each row is needed.
// Notifications (announcements, BGP, host plan, ports) do not show in programs.
func TestEveryDependencyIsNeeded(t *testing.T) {
	for i, d := range dependencies {
		if d.to >= Announcement {
			continue
		}
		without := slices.Delete(slices.Clone(dependencies), i, i+1)
		found := false
		for seed := uint64(0); seed < 1000 && !found; seed++ {
			found = random(seed, without, 150) != ""
		}
		if !found {
			t.Errorf("nobody misses the dependency of %s on %s", d.to, d.from)
		}
	}
}

// A dependency points to a kind that is computed later, so that one pass is enough.
func TestDependenciesLeadOn(t *testing.T) {
	for _, d := range dependencies {
		if d.to <= d.from || d.to < Pipeline {
			t.Errorf("%s follows from %s, which is computed later", d.to, d.from)
		}
	}
	for k, name := range kindNames {
		if name == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

// Nothing is kept of deleted objects except the numbers of tenants.
func TestNothingIsLeft(t *testing.T) {
	r := changes{rand.New(rand.NewPCG(1, 27)), New(testConfig(), Inputs{})}
	finish := func() {
		for r.c.Dirty() {
			r.c.Step(1000)
		}
	}
	for range 500 {
		r.change()
		finish()
	}
	for _, e := range []ofnet.Encap{ofnet.VLAN, ofnet.VXLAN} {
		r.c.SetBridge(e, BridgeState{Round: 1})
	}
	finish()
	for _, o := range r.objects() {
		r.c.Delete(o.Key().Kind, o.Key().ID)
	}
	r.c.SetPorts(nil)
	finish()
	c := r.c
	for what, n := range map[string]int{
		"tenants here": len(c.tenantsHere), "VLAN networks": len(c.vlans), "members": len(c.members),
		"tenants": len(c.tenants), "rules": len(c.rules), "infra": len(c.infra), "peers": len(c.peers), "seen": len(c.seen), "ruled": len(c.ruled),
		"peered": len(c.peered), "owners": len(c.owners.claims) + len(c.owners.by), "locations": len(c.locations.endpoints) + len(c.locations.networks),
		"group tags": len(c.groupTags.of) + len(c.groupTags.members), "subjects": len(c.subjects.of) + len(c.subjects.tenants),
		"rule set bridges": len(c.setBridges), "fingerprints": len(c.fingerprints), "numbers of rule sets": len(c.setNumbers.by) + len(c.setNumbers.taken),
		"frontends": len(c.frontends.by) + len(c.frontends.taken), "services": len(c.services),
	} {
		if n != 0 {
			t.Errorf("%s: %d are left", what, n)
		}
	}
}

// TestRulesComeBeforeGenerations: when the flows of a tenant are computed, which cause
// connections to be re-evaluated, the flows of all rules and policies are up to date, even
// if inputs have changed during the pass.
func TestRulesComeBeforeGenerations(t *testing.T) {
	judging := func(all map[ofnet.Encap]map[string]ofnet.Program) []string {
		return slices.DeleteFunc(text(all), func(line string) bool {
			_, owner, _ := strings.Cut(line, " ")
			return !strings.HasPrefix(owner, "rule/") && !strings.HasPrefix(owner, "rule-set/") && !strings.HasPrefix(owner, "endpoint-policy/")
		})
	}
	checked := 0
	for seed := range seeds(100) {
		r := changes{rand.New(rand.NewPCG(seed, 28)), New(testConfig(), Inputs{})}
		b := bridges{ofnet.VLAN: {}, ofnet.VXLAN: {}}
		for e := range b {
			r.c.SetBridge(e, BridgeState{Round: 1})
		}
		r.c.SetSynced()
		for range 1500 {
			if r.IntN(12) == 0 {
				r.change()
			}
			out, _ := r.c.Step(1)
			b.take(out)
			if len(out) == 0 || out[0].Kind != TenantFlows {
				continue
			}
			checked++
			if diff := cmp.Diff(judging(Compile(testConfig(), r.c.Inputs)), judging(b)); diff != "" {
				t.Fatalf("seed %d: flows of %s are computed before those of rules (-inputs +computed):\n%s", seed, out[0].Owner, diff)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d flows of tenants were looked at", checked)
	}
}
