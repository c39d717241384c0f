package ofnet

import (
	"iter"
	"slices"

	"github.com/contiv/netplugin/utils/delta"
)

// desiredSet holds what owners want of one kind (flows, groups or meters), by key, and what
// the bridge has. Owners that want the same key share it: the value of the first one is
// used until it releases the key. Protected by the Switch's lock.
type desiredSet[K comparable, V any] struct {
	diff    *delta.Map[K, V]
	holders map[K]string     // owners whose values are the desired ones
	rivals  map[K][]claim[V] // further owners that want the key; normally empty
	refused map[K]error      // what the bridge has rejected, until it is retried

	// hash, if set, returns the checksum of a desired value; digest is their sum, which
	// does not depend on their order.
	hash   func(K, V) uint64
	digest uint64
}

// claim is the value that an owner wants for a key that another one holds.
type claim[V any] struct {
	owner string
	value V
}

func newDesiredSet[K comparable, V any](equal func(a, b V) bool) *desiredSet[K, V] {
	return &desiredSet[K, V]{
		diff: delta.New[K](equal), holders: map[K]string{}, rivals: map[K][]claim[V]{}, refused: map[K]error{},
	}
}

// replace replaces an owner's keys, which are in old, by fresh.
func (w *desiredSet[K, V]) replace(owner string, old iter.Seq[K], fresh iter.Seq2[K, V]) {
	keep := map[K]struct{}{}
	for key, v := range fresh {
		keep[key] = struct{}{}
		w.claim(owner, key, v)
	}
	for key := range old {
		if _, ok := keep[key]; !ok {
			w.release(owner, key)
		}
	}
}

func (w *desiredSet[K, V]) claim(owner string, key K, v V) {
	if holder, held := w.holders[key]; held && holder != owner {
		for i, r := range w.rivals[key] {
			if r.owner == owner {
				w.rivals[key][i].value = v
				return
			}
		}
		w.rivals[key] = append(w.rivals[key], claim[V]{owner, v})
		return
	}
	w.holders[key] = owner
	delete(w.refused, key)
	w.want(key, v)
}

// want sets the desired value of a key.
func (w *desiredSet[K, V]) want(key K, v V) {
	if w.hash != nil {
		w.forget(key)
		w.digest += w.hash(key, v)
	}
	w.diff.SetDesired(key, v)
}

// forget removes the desired value of a key from the digest.
func (w *desiredSet[K, V]) forget(key K) {
	if w.hash == nil {
		return
	}
	if old, ok := w.diff.Desired(key); ok {
		w.digest -= w.hash(key, old)
	}
}

// release passes a key on to the next owner that wants it, if there is one.
func (w *desiredSet[K, V]) release(owner string, key K) {
	rivals := slices.DeleteFunc(w.rivals[key], func(c claim[V]) bool { return c.owner == owner })
	if w.holders[key] == owner {
		delete(w.refused, key)
		if len(rivals) == 0 {
			delete(w.holders, key)
			w.forget(key)
			w.diff.DeleteDesired(key)
		} else {
			w.holders[key] = rivals[0].owner
			w.want(key, rivals[0].value)
			rivals = rivals[1:]
		}
	}
	if len(rivals) == 0 {
		delete(w.rivals, key)
	} else {
		w.rivals[key] = rivals
	}
}

// open yields the differences to send: either removals or the others, without what the
// bridge has rejected.
func (w *desiredSet[K, V]) open(removals bool) iter.Seq[delta.Change[K, V]] {
	return func(yield func(delta.Change[K, V]) bool) {
		for c := range w.diff.Pending() {
			if _, no := w.refused[c.Key]; no || (c.Op == delta.Remove) != removals {
				continue
			}
			if !yield(c) {
				return
			}
		}
	}
}

// settled reports whether the bridge has the desired value of a key; the error is why the
// bridge has rejected it.
func (w *desiredSet[K, V]) settled(key K) (bool, error) {
	if err := w.refused[key]; err != nil {
		return false, err
	}
	_, pending := w.diff.PendingFor(key)
	return !pending, nil
}
