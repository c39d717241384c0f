package whatif

import (
	"slices"

	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/state/flowapi"
)

// tally counts each connection once: what the second end says of one that has been counted,
// because it came late or the clocks of both hosts differ, takes the place of what the
// first has said.
type tally struct {
	out           *flowapi.Preview
	limit         int
	before, after *Rules
	halves        map[flows.Tuple][]half
	many          int // halves
}

// half is a record that has been counted, whose other end may follow.
type half struct {
	record *flowapi.Record
	change change
}

// change is what would become of a connection.
type change int

const (
	same change = iota
	wouldDeny
	wouldAllow
)

// add counts a recorded connection.
func (t *tally) add(rec *flowapi.Record) {
	key := flows.TupleOf(rec)
	whole := !isHalf(rec)
	if i := slices.IndexFunc(t.halves[key], func(h half) bool { return sameConnection(h.record, rec) }); i >= 0 {
		first := t.halves[key][i]
		t.halves[key] = slices.Delete(t.halves[key], i, i+1)
		t.many--
		t.undo(first)
		whole = whole || first.record.ID != rec.ID
		if rec.Verdict == flowapi.Allowed && first.record.Verdict != flowapi.Allowed {
			rec = first.record // one end denied it
		}
	}
	what := t.count(rec)
	if !whole && t.many < mostHalves {
		t.halves[key] = append(t.halves[key], half{rec, what})
		t.many++
	}
}

// isHalf reports whether another host may tell of the same connection.
func isHalf(r *flowapi.Record) bool {
	return len(r.Hosts) == 1 && r.Src.Host != "" && r.Dst.Host != "" && r.Src.Host != r.Dst.Host
}

// sameConnection reports whether two records are of one connection.
func sameConnection(a, b *flowapi.Record) bool {
	if a.ID == b.ID {
		return true
	}
	return !slices.Equal(a.Hosts, b.Hosts) && flows.SameDestination(a, b) && a.Start.Sub(b.Start).Abs() <= halvesApart
}

// count adds a connection, and says what would become of it.
func (t *tally) count(rec *flowapi.Record) change {
	t.out.Examined++
	c, ok := t.before.recorded(rec)
	if !ok {
		return same
	}
	was := t.before.Judge(rec.Tenant, c)
	c, _ = t.after.recorded(rec)
	would := t.after.Judge(rec.Tenant, c)
	would.At = flowapi.AtBoth
	found := flowapi.PreviewedFlow{Record: *rec, By: would}
	switch now, then := was.Verdict == flowapi.Allowed, would.Verdict == flowapi.Allowed; {
	case now && !then && rec.Verdict == flowapi.Allowed:
		t.out.WouldDeny++
		t.out.Denied = appendUpTo(t.limit, t.out.Denied, found)
		return wouldDeny
	case !now && then && rec.Verdict != flowapi.Allowed:
		t.out.WouldAllow++
		t.out.Allowed = appendUpTo(t.limit, t.out.Allowed, found)
		return wouldAllow
	}
	return same
}

// undo takes a connection back.
func (t *tally) undo(h half) {
	of := func(f flowapi.PreviewedFlow) bool { return f.Record.ID == h.record.ID }
	t.out.Examined--
	switch h.change {
	case wouldDeny:
		t.out.WouldDeny--
		t.out.Denied = slices.DeleteFunc(t.out.Denied, of)
	case wouldAllow:
		t.out.WouldAllow--
		t.out.Allowed = slices.DeleteFunc(t.out.Allowed, of)
	}
}

func appendUpTo(limit int, list []flowapi.PreviewedFlow, f flowapi.PreviewedFlow) []flowapi.PreviewedFlow {
	if len(list) >= limit {
		return list
	}
	return append(list, f)
}
