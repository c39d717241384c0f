package objdb

import (
	"encoding/json"
	"iter"
	"maps"
	"strings"
)

// Mirror keeps the records below a prefix as a watch tells of them, and says what changes.
// Of a snapshot it says as well what has gone since. The zero value, with Prefix and Changed
// set, is ready. It is not safe for concurrent use.
type Mirror[T any] struct {
	Prefix string
	// Decode reads a record; nil: it is JSON. A record that cannot be read changes nothing:
	// what it was before stays.
	Decode func(value []byte) (T, error)
	// Changed is called for every record that is there, was there or both, by the rest of
	// its key. nil stands for no record. A record that is told of again may be equal.
	Changed func(id string, old, now *T)
	// Unreadable is called for a record that cannot be read; may be nil.
	Unreadable func(key string, err error)

	records map[string]T
}

// Apply takes the next batch of the watch. Records of other prefixes may be in it.
func (m *Mirror[T]) Apply(b Batch) {
	if b.Snapshot {
		m.forgetMissing(b.Events)
	}
	for _, ev := range b.Events {
		id, mine := strings.CutPrefix(ev.KV.Key, m.Prefix)
		switch {
		case !mine:
		case ev.Deleted:
			m.remove(id)
		default:
			m.put(id, ev.KV)
		}
	}
}

// Get returns a record.
func (m *Mirror[T]) Get(id string) (record T, ok bool) {
	record, ok = m.records[id]
	return record, ok
}

// Len returns how many records there are.
func (m *Mirror[T]) Len() int { return len(m.records) }

// All returns every record, in no order.
func (m *Mirror[T]) All() iter.Seq2[string, T] { return maps.All(m.records) }

// forgetMissing removes what a snapshot does not have.
func (m *Mirror[T]) forgetMissing(snapshot []Event) {
	present := map[string]struct{}{}
	for _, ev := range snapshot {
		if id, mine := strings.CutPrefix(ev.KV.Key, m.Prefix); mine {
			present[id] = struct{}{}
		}
	}
	for id := range m.records {
		if _, ok := present[id]; !ok {
			m.remove(id)
		}
	}
}

func (m *Mirror[T]) put(id string, kv KV) {
	now, err := m.decode(kv.Value)
	if err != nil {
		if m.Unreadable != nil {
			m.Unreadable(kv.Key, err)
		}
		return
	}
	old, had := m.records[id]
	if m.records == nil {
		m.records = map[string]T{}
	}
	m.records[id] = now
	if had {
		m.Changed(id, &old, &now)
		return
	}
	m.Changed(id, nil, &now)
}

func (m *Mirror[T]) remove(id string) {
	if old, had := m.records[id]; had {
		delete(m.records, id)
		m.Changed(id, &old, nil)
	}
}

func (m *Mirror[T]) decode(value []byte) (record T, err error) {
	if m.Decode != nil {
		return m.Decode(value)
	}
	err = json.Unmarshal(value, &record)
	return record, err
}
