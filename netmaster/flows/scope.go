package flows

import (
	"slices"

	"github.com/contiv/netplugin/state/flowapi"
)

// Sees says which tenants are shown to whoever asks; nil shows everything.
type Sees func(tenant string) bool

func (s Sees) tenant(name string) bool { return s == nil || s(name) }

// Scope returns what of a record is shown: nothing if none of its tenants is, and no names of
// an end whose tenant is not.
func Scope(r flowapi.Record, sees Sees) (flowapi.Record, bool) {
	if sees == nil {
		return r, true
	}
	if !slices.ContainsFunc(r.Tenants(), sees) {
		return r, false
	}
	src, dst := sees.end(r, r.Src), sees.end(r, r.Dst)
	if src && dst {
		return r, true
	}
	if !src {
		r.Src = nameless(r.Src)
	}
	if !dst {
		r.Dst = nameless(r.Dst)
	}
	if !sees(r.Tenant) && r.Service != nil {
		service := *r.Service
		service.Name = ""
		r.Service = &service
	}
	shown := map[string]bool{flowapi.AtSource: src, flowapi.AtDestination: dst}
	r.Decisions = slices.Clone(r.Decisions)
	for i, d := range r.Decisions {
		if !shown[d.At] {
			r.Decisions[i] = flowapi.Decision{Host: d.Host, At: d.At, By: d.By, Verdict: d.Verdict}
		}
	}
	if d := r.WouldBe; d != nil && !shown[d.At] {
		r.WouldBe = &flowapi.Decision{Host: d.Host, At: d.At, By: d.By, Verdict: d.Verdict}
	}
	return r, true
}

// end reports whether an end of a record is shown. One that is no endpoint's is nobody's.
func (s Sees) end(r flowapi.Record, e flowapi.End) bool {
	switch {
	case e.Tenant != "":
		return s(e.Tenant)
	case e.Endpoint == "" && e.Name == "" && e.Group == "":
		return true
	}
	return s(r.Tenant)
}

// nameless is an end without what its tenant calls it.
func nameless(e flowapi.End) flowapi.End { return flowapi.End{Address: e.Address, Port: e.Port} }
