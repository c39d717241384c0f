package objdb

import (
	"encoding/json"
	"iter"
	"maps"
	"strings"
)

// Change describes how one record has changed.
type Change[T any] struct {
	Key, ID  string // ID is what follows the prefix in Key
	Old, New T
	Was, Is  bool // there was an Old, there is a New
}

// Mirror keeps the records below a prefix equal to what a watch delivers, and reports
// changes, including records that are missing from a new snapshot. The zero value, with
// Prefix and Changed set, is ready to use. It is not safe for concurrent use.
type Mirror[T any] struct {
	Prefix string
	// Decode decodes a record; nil: it is JSON. A record that cannot be decoded keeps
	// its previous value.
	Decode func(value []byte) (T, error)
	// DecodeKey replaces Decode where a record must match its key.
	DecodeKey func(key string, value []byte) (T, error)
	// Changed is called for every record that is added, changed or removed. A record
	// that a snapshot repeats may be unchanged.
	Changed func(Change[T])
	// Unreadable is called for a record that cannot be decoded; may be nil.
	Unreadable func(key string, err error)

	records map[string]T
}

// Apply applies the next batch of the watch. It may contain other prefixes.
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

// forgetMissing removes the records that are not in a snapshot.
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
	now, err := m.decode(kv)
	if err != nil {
		if m.Unreadable != nil {
			m.Unreadable(kv.Key, err)
		}
		return
	}
	if m.records == nil {
		m.records = map[string]T{}
	}
	old, was := m.records[id]
	m.records[id] = now
	m.Changed(Change[T]{Key: kv.Key, ID: id, Old: old, New: now, Was: was, Is: true})
}

func (m *Mirror[T]) remove(id string) {
	if old, was := m.records[id]; was {
		delete(m.records, id)
		m.Changed(Change[T]{Key: m.Prefix + id, ID: id, Old: old, Was: true})
	}
}

func (m *Mirror[T]) decode(kv KV) (T, error) {
	switch {
	case m.DecodeKey != nil:
		return m.DecodeKey(kv.Key, kv.Value)
	case m.Decode != nil:
		return m.Decode(kv.Value)
	}
	return decodeJSON[T](kv.Value)
}

func decodeJSON[T any](value []byte) (record T, err error) {
	err = json.Unmarshal(value, &record)
	return record, err
}
