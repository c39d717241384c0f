package intent

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
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
	key     func(K) string // store key of a row
	base    map[K]row[V]
	over    map[K]*V // nil: deleted
	indexes []*index[K, V]
}

// row is a record with the store revision of its last change.
type row[V any] struct {
	v   *V
	rev int64
}

// index finds the rows of base by a value. A row may have several values (each), or, in
// most indexes, exactly one (of).
type index[K comparable, V any] struct {
	of   func(K, *V) string
	each func(K, *V) []string
	keys map[string]map[K]struct{}
}

// values returns the index values of a row.
func (ix *index[K, V]) values(k K, v *V) []string {
	if ix.each != nil {
		return ix.each(k, v)
	}
	return []string{ix.of(k, v)}
}

// has reports whether a row has an index value.
func (ix *index[K, V]) has(k K, v *V, value string) bool {
	if ix.each != nil {
		return slices.Contains(ix.each(k, v), value)
	}
	return ix.of(k, v) == value
}

func newTable[K comparable, V any](key func(K) string) *table[K, V] {
	return &table[K, V]{key: key, base: map[K]row[V]{}, over: map[K]*V{}}
}

// indexed adds an index; the table is still empty.
func (t *table[K, V]) indexed(of func(K, *V) string) *index[K, V] {
	ix := &index[K, V]{of: of, keys: map[string]map[K]struct{}{}}
	t.indexes = append(t.indexes, ix)
	return ix
}

// indexedEach adds an index in which a row may have any number of values.
func (t *table[K, V]) indexedEach(each func(K, *V) []string) *index[K, V] {
	ix := &index[K, V]{each: each, keys: map[string]map[K]struct{}{}}
	t.indexes = append(t.indexes, ix)
	return ix
}

// committed is the table without planned changes.
func (t *table[K, V]) committed() *table[K, V] {
	return &table[K, V]{key: t.key, base: t.base, indexes: t.indexes}
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
		for k := range ix.keys[value] {
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
	t.base[k] = r
	for _, ix := range t.indexes {
		for _, value := range ix.values(k, r.v) {
			if ix.keys[value] == nil {
				ix.keys[value] = map[K]struct{}{}
			}
			ix.keys[value][k] = struct{}{}
		}
	}
}

func (t *table[K, V]) unset(k K) {
	old, ok := t.base[k]
	if !ok {
		return
	}
	delete(t.base, k)
	for _, ix := range t.indexes {
		for _, value := range ix.values(k, old.v) {
			if delete(ix.keys[value], k); len(ix.keys[value]) == 0 {
				delete(ix.keys, value)
			}
		}
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
			text, err := json.Marshal(v)
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
	return slices.Sorted(maps.Keys(ix.keys[value]))
}
