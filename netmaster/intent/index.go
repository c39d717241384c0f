package intent

import (
	"iter"
	"slices"
)

// index finds the rows of base by a value. A row may have several values (each), or, in
// most indexes, exactly one (of).
type index[K comparable, V any] struct {
	of   func(K, *V) string
	each func(K, *V) []string
	keys map[string]keySet[K]
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

func (ix *index[K, V]) add(k K, v *V) {
	for _, value := range ix.values(k, v) {
		ix.keys[value] = ix.keys[value].with(k)
	}
}

func (ix *index[K, V]) remove(k K, v *V) {
	for _, value := range ix.values(k, v) {
		if rest := ix.keys[value].without(k); rest.len() > 0 {
			ix.keys[value] = rest
		} else {
			delete(ix.keys, value)
		}
	}
}

// under iterates over the keys of the rows with a value, in no particular order. count is
// how many there are.
func (ix *index[K, V]) under(value string) iter.Seq[K] { return ix.keys[value].all() }
func (ix *index[K, V]) count(value string) int         { return ix.keys[value].len() }

// fewKeys is up to how many keys a keySet searches one by one.
const fewKeys = 32

// keySet is a set of keys. Most of those in an index are small, many have one key: they are
// lists, as an empty map takes more than these.
type keySet[K comparable] struct {
	few  []K
	many map[K]struct{} // nil: few has them
}

func (s keySet[K]) len() int { return len(s.few) + len(s.many) }

func (s keySet[K]) all() iter.Seq[K] {
	return func(yield func(K) bool) {
		for _, k := range s.few {
			if !yield(k) {
				return
			}
		}
		for k := range s.many {
			if !yield(k) {
				return
			}
		}
	}
}

// with and without return the set with a key more or less; s is not to be used any more.
func (s keySet[K]) with(k K) keySet[K] {
	switch {
	case s.many != nil:
		s.many[k] = struct{}{}
	case slices.Contains(s.few, k):
	case len(s.few) < fewKeys:
		s.few = append(s.few, k)
	default:
		s.many = make(map[K]struct{}, len(s.few)+1)
		for _, old := range s.few {
			s.many[old] = struct{}{}
		}
		s.few, s.many[k] = nil, struct{}{}
	}
	return s
}

func (s keySet[K]) without(k K) keySet[K] {
	if i := slices.Index(s.few, k); i >= 0 {
		s.few = slices.Delete(s.few, i, i+1)
	}
	delete(s.many, k)
	return s
}
