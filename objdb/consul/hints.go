package consul

import (
	"strings"
	"sync"
)

const (
	maxHints     = 4096
	maxHintValue = 4 << 10 // bytes
)

// hints remembers keys that were compared by value or creation, as they were read or
// written last, so that the next such comparison need not read first. What it says was
// true at the entry's modify index, and whoever uses it makes the servers check that
// index; a hint that is out of date costs one more round trip and nothing else.
type hints struct {
	mu      sync.Mutex
	entries map[string]entry // by key in Consul's form; all exist
}

func (h *hints) get(key string) (entry, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.entries[key]
	return e, ok
}

// learn keeps an entry that was read.
func (h *hints) learn(key string, e entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !e.exists() || len(e.value) > maxHintValue {
		delete(h.entries, key)
		return
	}
	if h.entries == nil || len(h.entries) >= maxHints {
		h.entries = map[string]entry{}
	}
	h.entries[key] = e
}

// update keeps an entry that was written, if the key is one that is compared.
func (h *hints) update(key string, e entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, there := h.entries[key]
	switch {
	case !there || old.modify > e.modify:
	case len(e.value) > maxHintValue:
		delete(h.entries, key)
	default:
		h.entries[key] = e
	}
}

// forget drops keys that are no more: one, or all with a prefix.
func (h *hints) forget(key string, prefix bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !prefix {
		delete(h.entries, key)
		return
	}
	for k := range h.entries {
		if strings.HasPrefix(k, key) {
			delete(h.entries, k)
		}
	}
}
