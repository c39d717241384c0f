package events

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/signal"
)

// batch is what one revision changed.
type batch struct {
	rev     int64
	notices []contivmodel.Notice
	size    int // bytes of the objects
}

// history is the recent changes, oldest first. Readers have a place in it, a number
// that grows with every batch; a place whose batch is forgotten is lost.
type history struct {
	maxBatches, maxBytes int
	types                []string // of the kinds that objects can be made of

	mu      sync.Mutex
	begun   bool          // something is known at all
	ready   chan struct{} // closed when begun
	closed  bool
	since   int64 // the revision after which everything is in batches
	last    int64 // the revision of the newest batch, or since
	first   int   // place of batches[0]
	batches []batch
	size    int
	more    signal.Signal // broadcast when any of this has changed
}

func newHistory(maxBatches, maxBytes int) *history {
	return &history{maxBatches: maxBatches, maxBytes: maxBytes, types: contivmodel.Types(), ready: make(chan struct{})}
}

// add takes what a watch of the store delivers.
func (h *history) add(b objdb.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.wake()
	if b.Snapshot {
		// Whatever lies between is unknown: every place is lost.
		h.first += len(h.batches) + 1
		if !h.begun {
			close(h.ready)
		}
		h.batches, h.size, h.begun = nil, 0, true
		h.since, h.last = b.Revision, b.Revision
		return
	}
	n := batch{rev: b.Revision}
	for _, ev := range b.Events {
		if notice, ok := h.noticeOf(ev); ok {
			n.notices = append(n.notices, notice)
			n.size += len(ev.KV.Key) + len(ev.KV.Value)
		}
	}
	h.batches, h.size, h.last = append(h.batches, n), h.size+n.size, b.Revision
	drop := 0
	for left := len(h.batches); left-drop > h.maxBatches || h.size > h.maxBytes && drop < left; drop++ {
		h.size -= h.batches[drop].size
		h.since = h.batches[drop].rev
	}
	h.first += drop
	h.batches = slices.Delete(h.batches, 0, drop)
}

// close ends all streams.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wake()
}

func (h *history) wake() {
	h.more.Broadcast()
}

// end is the place of the next batch, and the revision up to which everything lies
// before it; begun says whether there is anything to go by.
func (h *history) end() (place int, rev int64, begun bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first + len(h.batches), h.last, h.begun && !h.closed
}

// after is the place of what came after a revision. It is not known for one that is
// too old, or is of the future.
func (h *history) after(rev int64) (place int, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun || rev < h.since || rev > h.last {
		return 0, false
	}
	return h.first + sort.Search(len(h.batches), func(i int) bool { return h.batches[i].rev > rev }), true
}

// read is what a reader finds.
type read struct {
	batches []batch
	next    int             // the place after them
	rev     int64           // the newest revision
	lost    bool            // the place is forgotten
	closed  bool            // there will be no more
	more    <-chan struct{} // closed when there is
}

// maxRead bounds what one read returns, in batches: between two a reader is measured
// again.
const maxRead = 64

func (h *history) read(place int) read {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := read{next: place, rev: h.last, lost: place < h.first, closed: h.closed, more: h.more.Next()}
	if !r.lost {
		rest := h.batches[place-h.first:]
		r.batches = slices.Clone(rest[:min(len(rest), maxRead)])
		r.next += len(r.batches)
	}
	return r
}

// noticeOf translates an event of the store. It returns false for events that concern no
// object.
func (h *history) noticeOf(ev objdb.Event) (contivmodel.Notice, bool) {
	obj, ok := h.objectOf(ev.KV, ev.Deleted)
	if !ok {
		return contivmodel.Notice{}, false
	}
	n := contivmodel.Notice{Event: contivmodel.NoticeChanged, Objects: []contivmodel.Object{obj}}
	switch {
	case ev.Deleted:
		n.Event = contivmodel.NoticeRemoved
	case ev.KV.CreateRevision == ev.KV.ModRevision:
		n.Event = contivmodel.NoticeAdded
	}
	return n, true
}

func (h *history) objectOf(kv objdb.KV, gone bool) (contivmodel.Object, bool) {
	kind, key, ok := strings.Cut(strings.TrimPrefix(kv.Key, state.ModelRoot), "/")
	obj := contivmodel.Object{Kind: kind, Key: key}
	if !ok || !slices.Contains(h.types, kind) {
		return obj, false
	}
	if !gone {
		obj.Object = shown(kind, kv.Value)
	}
	return obj, gone || json.Valid(kv.Value)
}

// shown is an object as users see it: without the password that is sealed in the store.
func shown(kind string, value []byte) json.RawMessage {
	var b contivmodel.Bgp
	if kind != contivmodel.BgpType || json.Unmarshal(value, &b) != nil || !seal.Sealed(b.Password) {
		return value
	}
	b.Password = contivmodel.HiddenPassword
	text, err := json.Marshal(&b)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}
