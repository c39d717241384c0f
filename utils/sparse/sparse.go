// Package sparse has a set of integers that finds the lowest number not in it, or the
// next one in it, in a handful of steps however large and however full the set is,
// and that takes memory only for the neighborhoods that are in use. It serves as the
// free list of address and tag pools, from a /29 to a /8.
package sparse

import "math/bits"

// Set is a set of integers in [0, size). It is a tree of 64-way nodes: a leaf's bits
// are the members, a branch's bits say which children are full. A missing child is
// empty. The zero value is not usable; see New. Not safe for concurrent use.
type Set struct {
	root   *node
	levels int // levels of branches above the leaves
	size   uint64
	len    int
}

type node struct {
	bits uint64
	kids *[64]*node // nil in leaves
}

const fan = 6 // bits of an index that one level decides

// New returns an empty set for the integers below size.
func New(size uint64) *Set {
	s := &Set{size: size}
	for reach := uint64(64); reach != 0 && reach < size; reach <<= fan {
		s.levels++
		if reach > 1<<(63-fan) {
			break
		}
	}
	return s
}

// Len returns the number of members.
func (s *Set) Len() int { return s.len }

// Size returns the bound given to New.
func (s *Set) Size() uint64 { return s.size }

// Has reports whether i is a member.
func (s *Set) Has(i uint64) bool {
	if i >= s.size {
		return false
	}
	n := s.root
	for level := s.levels; n != nil; level-- {
		at := slot(i, level)
		if level == 0 {
			return n.bits>>at&1 == 1
		}
		if n.bits>>at&1 == 1 {
			return true
		}
		n = n.kids[at]
	}
	return false
}

// Add makes i a member and reports whether it was none. Numbers outside the set's
// bounds are never members.
func (s *Set) Add(i uint64) bool {
	if i >= s.size || s.Has(i) {
		return false
	}
	s.root = add(s.root, s.levels, i)
	s.len++
	return true
}

func add(n *node, level int, i uint64) *node {
	if n == nil {
		n = new(node)
		if level > 0 {
			n.kids = new([64]*node)
		}
	}
	at := slot(i, level)
	if level == 0 {
		n.bits |= 1 << at
		return n
	}
	kid := add(n.kids[at], level-1, i)
	n.kids[at] = kid
	if kid.bits == ^uint64(0) {
		n.bits |= 1 << at
	}
	return n
}

// Remove makes i no member and reports whether it was one.
func (s *Set) Remove(i uint64) bool {
	if !s.Has(i) {
		return false
	}
	if remove(s.root, s.levels, i) {
		s.root = nil
	}
	s.len--
	return true
}

// remove reports whether n is empty afterwards.
func remove(n *node, level int, i uint64) bool {
	at := slot(i, level)
	n.bits &^= 1 << at
	if level == 0 {
		return n.bits == 0
	}
	if !remove(n.kids[at], level-1, i) {
		return false
	}
	n.kids[at] = nil
	for _, kid := range n.kids {
		if kid != nil {
			return false
		}
	}
	return true
}

// NextFree returns the lowest number ≥ from that is not a member; false when every
// one below the bound is.
func (s *Set) NextFree(from uint64) (uint64, bool) {
	if from >= s.size {
		return 0, false
	}
	i, ok := nextFree(s.root, s.levels, from)
	return i, ok && i < s.size
}

func nextFree(n *node, level int, from uint64) (uint64, bool) {
	if n == nil {
		return from, true
	}
	shift := fan * level
	at := slot(from, level)
	rest := from & (1<<shift - 1)
	for open := ^n.bits >> at << at; open != 0; open &= open - 1 {
		k := uint64(bits.TrailingZeros64(open))
		if level == 0 {
			return k, true
		}
		if k != at {
			rest = 0
		}
		if i, ok := nextFree(n.kids[k], level-1, rest); ok {
			return k<<shift | i, true
		}
	}
	return 0, false
}

// Next returns the lowest member ≥ from, false when there is none.
func (s *Set) Next(from uint64) (uint64, bool) {
	if from >= s.size {
		return 0, false
	}
	return next(s.root, s.levels, from)
}

func next(n *node, level int, from uint64) (uint64, bool) {
	if n == nil {
		return 0, false
	}
	at := slot(from, level)
	if level == 0 {
		in := n.bits >> at << at
		return uint64(bits.TrailingZeros64(in)), in != 0
	}
	shift := fan * level
	rest := from & (1<<shift - 1)
	for k := at; k < 64; k++ {
		if i, ok := next(n.kids[k], level-1, rest); ok {
			return k<<shift | i, true
		}
		rest = 0
	}
	return 0, false
}

// slot is the position of i among the children of a node of a level.
func slot(i uint64, level int) uint64 { return i >> (fan * level) & 63 }
