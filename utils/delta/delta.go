// Package delta keeps a wanted and an actual state side by side and knows, at any
// moment, what lies between them. Everything that programs something outside the
// process (flows, ports, tunnels, registry entries) is driven by one Map:
//
//	m := delta.New[string, Port](func(a, b Port) bool { return a == b })
//	for name, port := range readSwitch() {     // start: what is there
//		m.SetActual(name, port)
//	}
//	m.SetDesired("vport1", Port{...})          // whenever the desired state changes
//	for c := range m.Pending() {               // whenever there is time
//		switch c.Op {
//		case delta.Add:    create(c.Key, c.Want)
//		case delta.Update: change(c.Key, c.Have, c.Want)
//		case delta.Remove: remove(c.Key, c.Have)
//		}
//		m.Applied(c)                       // or leave it pending and retry later
//	}
//
// The order in which desired values arrive never matters: only the difference does. Starting
// up, reconnecting and changing are the same operation.
package delta

import "iter"

// Op says how a key differs.
type Op uint8

// The differences a key can have.
const (
	Add    Op = iota + 1 // wanted, not there
	Update               // wanted and there, but different
	Remove               // there, not wanted
)

// String returns "add", "update" or "remove".
func (o Op) String() string {
	switch o {
	case Add:
		return "add"
	case Update:
		return "update"
	case Remove:
		return "remove"
	}
	return "none"
}

// Change is one pending difference.
type Change[K comparable, V any] struct {
	Op   Op
	Key  K
	Want V // zero with Remove
	Have V // zero with Add
}

// entry holds both sides of one key. A side that is not set has the zero value.
type entry[V any] struct {
	want, have    V
	wanted, there bool
}

// Map holds the desired and the actual value of each key. The zero Map is not ready;
// use New. A Map is owned by one goroutine.
//
// Both values of a key are kept, also when they are equal: the actual one may carry
// what the desired one cannot know (a row's UUID, a port number). Large values are
// best held by pointer. A key that is gone on both sides takes nothing.
type Map[K comparable, V any] struct {
	equal   func(a, b V) bool
	entries map[K]*entry[V]
	pending map[K]struct{} // keys whose two sides differ; a subset of entries

	desired, actual int
}

// New makes an empty Map. equal says whether an actual value needs no change to be
// the desired one.
func New[K comparable, V any](equal func(desired, actual V) bool) *Map[K, V] {
	return &Map[K, V]{equal: equal, entries: map[K]*entry[V]{}, pending: map[K]struct{}{}}
}

// NewComparable makes an empty Map of values compared with ==.
func NewComparable[K, V comparable]() *Map[K, V] {
	return New[K](func(a, b V) bool { return a == b })
}

// SetDesired says that key is to have value v. It reports whether the key is pending
// afterwards.
func (m *Map[K, V]) SetDesired(key K, v V) bool {
	e := m.entry(key)
	if !e.wanted {
		e.wanted = true
		m.desired++
	}
	e.want = v
	return m.settle(key, e)
}

// DeleteDesired says that key is to be gone. It reports whether the key is pending
// afterwards.
func (m *Map[K, V]) DeleteDesired(key K) bool {
	e, ok := m.entries[key]
	if !ok {
		return false
	}
	if e.wanted {
		var zero V
		e.want, e.wanted = zero, false
		m.desired--
	}
	return m.settle(key, e)
}

// SetActual records that key really has value v.
func (m *Map[K, V]) SetActual(key K, v V) {
	e := m.entry(key)
	if !e.there {
		e.there = true
		m.actual++
	}
	e.have = v
	m.settle(key, e)
}

// DeleteActual records that key really is gone.
func (m *Map[K, V]) DeleteActual(key K) {
	e, ok := m.entries[key]
	if !ok {
		return
	}
	if e.there {
		var zero V
		e.have, e.there = zero, false
		m.actual--
	}
	m.settle(key, e)
}

// Applied records that c has been carried out. What was wanted in the meantime stays
// pending.
func (m *Map[K, V]) Applied(c Change[K, V]) {
	if c.Op == Remove {
		m.DeleteActual(c.Key)
		return
	}
	m.SetActual(c.Key, c.Want)
}

// ReplaceDesired makes the desired side exactly want.
func (m *Map[K, V]) ReplaceDesired(want map[K]V) {
	for key, e := range m.entries {
		if _, ok := want[key]; !ok && e.wanted {
			m.DeleteDesired(key)
		}
	}
	for key, v := range want {
		m.SetDesired(key, v)
	}
}

// ReplaceActual makes the actual side exactly have, for instance after a reconnect.
func (m *Map[K, V]) ReplaceActual(have map[K]V) {
	for key, e := range m.entries {
		if _, ok := have[key]; !ok && e.there {
			m.DeleteActual(key)
		}
	}
	for key, v := range have {
		m.SetActual(key, v)
	}
}

// ForgetActual says that nothing is there, for instance because the switch restarted.
func (m *Map[K, V]) ForgetActual() { m.ReplaceActual(nil) }

// Desired returns the desired value of key.
func (m *Map[K, V]) Desired(key K) (V, bool) {
	if e, ok := m.entries[key]; ok {
		return e.want, e.wanted
	}
	var zero V
	return zero, false
}

// Actual returns the actual value of key.
func (m *Map[K, V]) Actual(key K) (V, bool) {
	if e, ok := m.entries[key]; ok {
		return e.have, e.there
	}
	var zero V
	return zero, false
}

// PendingFor returns the difference of one key, if there is one.
func (m *Map[K, V]) PendingFor(key K) (Change[K, V], bool) {
	if _, ok := m.pending[key]; !ok {
		return Change[K, V]{}, false
	}
	return m.change(key), true
}

// Pending yields every difference, in no particular order. The loop may change the
// Map: a key that is settled before its turn is not yielded; a key that becomes
// pending during the loop may or may not be.
func (m *Map[K, V]) Pending() iter.Seq[Change[K, V]] {
	return func(yield func(Change[K, V]) bool) {
		for key := range m.pending {
			if !yield(m.change(key)) {
				return
			}
		}
	}
}

// AllDesired yields the desired side, in no particular order.
func (m *Map[K, V]) AllDesired() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, e := range m.entries {
			if e.wanted && !yield(key, e.want) {
				return
			}
		}
	}
}

// AllActual yields the actual side, in no particular order.
func (m *Map[K, V]) AllActual() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, e := range m.entries {
			if e.there && !yield(key, e.have) {
				return
			}
		}
	}
}

// Len returns how many keys are desired.
func (m *Map[K, V]) Len() int { return m.desired }

// LenActual returns how many keys are there.
func (m *Map[K, V]) LenActual() int { return m.actual }

// LenPending returns how many keys differ. Zero means that all is as desired.
func (m *Map[K, V]) LenPending() int { return len(m.pending) }

func (m *Map[K, V]) entry(key K) *entry[V] {
	e, ok := m.entries[key]
	if !ok {
		e = &entry[V]{}
		m.entries[key] = e
	}
	return e
}

// settle files key under pending or not, and forgets it when neither side has it.
func (m *Map[K, V]) settle(key K, e *entry[V]) bool {
	switch {
	case !e.wanted && !e.there:
		delete(m.entries, key)
		delete(m.pending, key)
		return false
	case e.wanted && e.there && m.equal(e.want, e.have):
		delete(m.pending, key)
		return false
	}
	m.pending[key] = struct{}{}
	return true
}

func (m *Map[K, V]) change(key K) Change[K, V] {
	e := m.entries[key]
	c := Change[K, V]{Op: Update, Key: key, Want: e.want, Have: e.have}
	switch {
	case !e.there:
		c.Op = Add
	case !e.wanted:
		c.Op = Remove
	}
	return c
}
