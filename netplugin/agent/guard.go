package agent

import (
	"maps"
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// guard withholds a snapshot that would disconnect all running containers: one
// without any network while containers of this host are in some. netmaster deletes no network
// that is in use, so the store has been emptied, replaced by another one, or no longer shows all of
// itself. It is used by the goroutine that applies batches only.
type guard struct {
	held map[string]objdb.Event // what is there, by key; nil: nothing is held back
	at   int64                  // revision of held
}

// admit returns the part of a batch to apply, if any. inUse reports whether
// containers of this host are in networks.
func (g *guard) admit(b objdb.Batch, inUse bool) (objdb.Batch, bool) {
	if b.Snapshot {
		g.held = nil
		if !inUse || slices.ContainsFunc(b.Events, isNetwork) {
			return b, true
		}
		g.held = map[string]objdb.Event{}
	}
	if g.held == nil {
		return b, true
	}
	g.at = b.Revision
	for _, ev := range b.Events {
		if ev.Deleted {
			delete(g.held, ev.KV.Key)
			continue
		}
		g.held[ev.KV.Key] = ev
	}
	if !slices.ContainsFunc(b.Events, isNetwork) {
		return objdb.Batch{}, false
	}
	all := objdb.Batch{Snapshot: true, Revision: g.at}
	for _, key := range slices.Sorted(maps.Keys(g.held)) {
		all.Events = append(all.Events, g.held[key])
	}
	g.held = nil
	return all, true
}

func isNetwork(ev objdb.Event) bool {
	return !ev.Deleted && strings.HasPrefix(ev.KV.Key, state.NetworkRoot)
}
