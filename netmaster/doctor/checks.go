package doctor

import (
	"cmp"
	"slices"

	"github.com/contiv/netplugin/state/doctorapi"
)

// check finds one kind of trouble.
type check struct {
	name string
	find func(*Facts) []doctorapi.Finding
}

// checks are all there are. Their order does not matter.
func checks() []check {
	return []check{hosts, health, switches, tunnels, mtus, stores, clocks, certificates, leaks, resources, versions, masters, authority}
}

// weights order findings.
var weights = map[doctorapi.Severity]int{doctorapi.Error: 0, doctorapi.Warning: 1, doctorapi.Note: 2}

// Examine judges facts: the findings of most weight come first.
func Examine(f *Facts) (findings []doctorapi.Finding, made []string) {
	findings = []doctorapi.Finding{}
	for _, c := range checks() {
		findings = append(findings, c.find(f)...)
		made = append(made, c.name)
	}
	slices.SortStableFunc(findings, func(a, b doctorapi.Finding) int {
		return cmp.Or(cmp.Compare(weights[a.Severity], weights[b.Severity]), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object))
	})
	return findings, made
}
