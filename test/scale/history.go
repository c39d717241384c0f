package main

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/contiv/netplugin/utils/signal"
)

// mark says when an agent had got to a revision of the store.
type mark struct {
	revision int64
	at       int64 // ns since 1970
}

// history is how far an agent has got, and when it got there. The zero value is ready.
type history struct {
	mu       sync.Mutex
	marks    []mark // ascending
	revision int64
	changed  signal.Signal
}

// reach notes that a revision has been reached now.
func (h *history) reach(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision > h.revision {
		h.revision = revision
		h.marks = append(h.marks, mark{revision, time.Now().UnixNano()})
	}
	h.changed.Broadcast()
}

// forget forgets all marks but the last.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.marks); n > 0 {
		h.marks = []mark{h.marks[n-1]}
	}
}

// await waits until a revision has been reached.
func (h *history) await(ctx context.Context, revision int64) error {
	for {
		h.mu.Lock()
		now, changed := h.revision, h.changed.Next()
		h.mu.Unlock()
		if now >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// at returns when a revision, which has been reached, was.
func (h *history) at(revision int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := sort.Search(len(h.marks), func(i int) bool { return h.marks[i].revision >= revision })
	if i == len(h.marks) {
		return 0
	}
	return h.marks[i].at
}
