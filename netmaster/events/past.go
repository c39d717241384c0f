package events

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
)

// past is what has happened to objects, oldest first, as far as it is remembered. Unlike the
// history it tells what happened while the store was unreachable: the difference.
type past struct {
	most, mostBytes int

	mu      sync.Mutex
	since   time.Time // everything since then is in changes; zero: nothing is known
	objects map[name]json.RawMessage
	changes []contivmodel.Change
	size    int // bytes of the changes' objects
}

type name struct{ kind, key string }

// add takes what a watch of the store delivers, as objects.
func (p *past) add(b objdb.Batch, at time.Time, objectOf func(objdb.KV, bool) (contivmodel.Object, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[name]bool{}
	for _, ev := range b.Events {
		if obj, ok := objectOf(ev.KV, ev.Deleted); ok {
			p.now(name{obj.Kind, obj.Key}, obj.Object, b.Revision, at)
			known[name{obj.Kind, obj.Key}] = true
		}
	}
	if b.Snapshot {
		for _, n := range p.others(known) {
			p.now(n, nil, b.Revision, at)
		}
	}
	if p.since.IsZero() { // what was there before is no change
		p.since, p.changes, p.size = at, nil, 0
	}
	p.bound()
}

// others are the objects that are not in a set, in order.
func (p *past) others(known map[name]bool) (out []name) {
	for n := range p.objects {
		if !known[n] {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b name) int { return strings.Compare(a.kind+"/"+a.key, b.kind+"/"+b.key) })
	return out
}

// now notes what an object is: nil, if it is gone.
func (p *past) now(n name, content json.RawMessage, revision int64, at time.Time) {
	before, was := p.objects[n]
	c := contivmodel.Change{Time: at.UTC(), Revision: revision, Event: contivmodel.NoticeChanged, Kind: n.kind, Key: n.key, Before: before, After: content}
	switch {
	case content == nil && !was, was && bytes.Equal(before, content):
		return
	case content == nil:
		c.Event = contivmodel.NoticeRemoved
		delete(p.objects, n)
	default:
		if !was {
			c.Event = contivmodel.NoticeAdded
		}
		p.objects[n] = content
	}
	p.changes, p.size = append(p.changes, c), p.size+sizeOf(c)
}

// bound forgets the oldest changes.
func (p *past) bound() {
	drop := 0
	for ; len(p.changes)-drop > p.most || p.size > p.mostBytes; drop++ {
		p.size -= sizeOf(p.changes[drop])
		p.since = p.changes[drop].Time
	}
	p.changes = slices.Delete(p.changes, 0, drop)
}

func sizeOf(c contivmodel.Change) int { return len(c.Kind) + len(c.Key) + len(c.Before) + len(c.After) }

// read returns the newest changes since a time that are wanted, limit at most.
func (p *past) read(since time.Time, limit int, wanted func(kind, key string) bool) contivmodel.Changes {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := contivmodel.Changes{Since: p.since.UTC(), Changes: []contivmodel.Change{}}
	if since.After(p.since) {
		out.Since = since.UTC()
	}
	for _, c := range slices.Backward(p.changes) {
		if c.Time.Before(out.Since) {
			break
		}
		if !wanted(c.Kind, c.Key) {
			continue
		}
		if len(out.Changes) == limit {
			out.Since = out.Changes[limit-1].Time
			break
		}
		out.Changes = append(out.Changes, c)
	}
	slices.Reverse(out.Changes)
	return out
}
