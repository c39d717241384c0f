package intent

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/contiv/netplugin/objdb"
)

// table is one kind of record: the store's content (base) and the changes planned by the
// current transaction (over). Values in a table are never modified, so readers may keep
// them.
//
// base is read by anybody who holds model.mu for reading, and changed by merge only. over
// belongs to the writer.
type table[K comparable, V any] struct {
	key func(K) string // store key of a row
	// encode is what the store has of a row.
	encode func(*V) ([]byte, error)
	// compact makes a row that is new to the base take less memory, without changing what it
	// says; nil: it takes little. Nobody else has the row yet.
	compact func(K, *V)

	base    map[K]row[V]
	over    map[K]*V // nil: deleted
	indexes []*index[K, V]
}

// row is a record with the store revision of its last change.
type row[V any] struct {
	v   *V
	rev int64
}

func newTable[K comparable, V any](key func(K) string) *table[K, V] {
	return &table[K, V]{
		key: key, base: map[K]row[V]{}, over: map[K]*V{},
		encode: func(v *V) ([]byte, error) { return json.Marshal(v) },
	}
}

// indexed adds an index; the table is still empty.
func (t *table[K, V]) indexed(of func(K, *V) string) *index[K, V] {
	ix := &index[K, V]{of: of, keys: map[string]keySet[K]{}}
	t.indexes = append(t.indexes, ix)
	return ix
}

// indexedEach adds an index in which a row may have any number of values.
func (t *table[K, V]) indexedEach(each func(K, *V) []string) *index[K, V] {
	ix := &index[K, V]{each: each, keys: map[string]keySet[K]{}}
	t.indexes = append(t.indexes, ix)
	return ix
}

// committed is the table without planned changes.
func (t *table[K, V]) committed() *table[K, V] {
	return &table[K, V]{key: t.key, base: t.base, encode: t.encode, indexes: t.indexes}
}

// get returns the writer's view: the overlay, or else the base.
func (t *table[K, V]) get(k K) (*V, bool) {
	if v, ok := t.over[k]; ok {
		return v, v != nil
	}
	r, ok := t.base[k]
	return r.v, ok
}

// put plans a row.
func (t *table[K, V]) put(x *tx, k K, v *V) { t.plan(x, k, v) }

// del plans the deletion of a row.
func (t *table[K, V]) del(x *tx, k K) { t.plan(x, k, nil) }

func (t *table[K, V]) plan(x *tx, k K, v *V) {
	before, had := t.over[k]
	t.over[k] = v
	x.onUndo(func() {
		if had {
			t.over[k] = before
		} else {
			delete(t.over, k)
		}
	})
}

// where iterates over the writer's view of an index, in no particular order.
func (t *table[K, V]) where(ix *index[K, V], value string) iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for k := range ix.under(value) {
			if _, planned := t.over[k]; !planned && !yield(k, t.base[k].v) {
				return
			}
		}
		for k, v := range t.over {
			if v != nil && ix.has(k, v, value) && !yield(k, v) {
				return
			}
		}
	}
}

// all iterates over the writer's view, in no particular order.
func (t *table[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for k, r := range t.base {
			if _, planned := t.over[k]; !planned && !yield(k, r.v) {
				return
			}
		}
		for k, v := range t.over {
			if v != nil && !yield(k, v) {
				return
			}
		}
	}
}

// load sets a row of the base at start, before the table is used.
func (t *table[K, V]) load(k K, v *V, rev int64) { t.set(k, row[V]{v: v, rev: rev}) }

func (t *table[K, V]) set(k K, r row[V]) {
	t.unset(k)
	if t.compact != nil {
		t.compact(k, r.v)
	}
	t.base[k] = r
	for _, ix := range t.indexes {
		ix.add(k, r.v)
	}
}

func (t *table[K, V]) unset(k K) {
	old, ok := t.base[k]
	if !ok {
		return
	}
	delete(t.base, k)
	for _, ix := range t.indexes {
		ix.remove(k, old.v)
	}
}

// planned is a table in a transaction, independent of its types.
type planned interface {
	pending() int
	// operations appends the operations for the overlay. A row that is new to the base
	// is only created, never overwritten.
	operations(txn *objdb.Txn) error
	merge(rev int64)
	discard()
}

func (t *table[K, V]) pending() int { return len(t.over) }

func (t *table[K, V]) operations(txn *objdb.Txn) error {
	for k, v := range t.over {
		key := t.key(k)
		old, had := t.base[k]
		switch {
		case v == nil && had:
			txn.Then = append(txn.Then, objdb.Delete(key))
		case v == nil, v == old.v:
		default:
			text, err := t.encode(v)
			if err != nil {
				return fmt.Errorf("encode %s: %w", key, err)
			}
			txn.Then = append(txn.Then, objdb.Put(key, text))
			if !had {
				txn.If = append(txn.If, objdb.Absent(key))
			}
		}
	}
	return nil
}

func (t *table[K, V]) merge(rev int64) {
	for k, v := range t.over {
		if v == nil {
			t.unset(k)
		} else if v != t.base[k].v {
			t.set(k, row[V]{v: v, rev: rev})
		}
	}
	t.discard()
}

func (t *table[K, V]) discard() { clear(t.over) }

// sortedKeys returns the keys with an index value, sorted. For readers.
func sortedKeys[V any](ix *index[string, V], value string) []string {
	return slices.Sorted(ix.under(value))
}
