package ofnet

import (
	"encoding/binary"
	"hash/fnv"
	"iter"

	of "github.com/contiv/netplugin/libopenflow"
)

// Program is what one object needs in a bridge: flows, and the groups and meters they refer
// to. A flow's groups and meters belong in the same Program, so that they are installed
// before it and removed after it.
type Program struct {
	Flows  []of.Flow
	Groups []of.Group
	Meters []of.Meter
	// Late says that the flows depend on other flows: they are sent after all others.
	Late bool
}

// Empty reports whether a program contains nothing.
func (p Program) Empty() bool { return len(p.Flows)+len(p.Groups)+len(p.Meters) == 0 }

// body is a flow without its key.
type body struct {
	do         of.Instructions
	cookie     uint64
	idle, hard uint16
	flags      uint16
	late       bool // not part of what the bridge reports
}

func sameBody(a, b body) bool {
	return a.do == b.do && a.idle == b.idle && a.hard == b.hard && (a.cookie^b.cookie)&cookieIdentity == 0
}

// hashFlow is a checksum of the key and what sameBody compares (64-bit FNV-1a).
func hashFlow(key of.FlowKey, b body) uint64 {
	head := binary.BigEndian.AppendUint16([]byte{key.Table}, key.Priority)
	head = binary.BigEndian.AppendUint16(head, b.idle)
	head = binary.BigEndian.AppendUint16(head, b.hard)
	head = binary.BigEndian.AppendUint64(head, b.cookie&cookieIdentity)
	head = binary.BigEndian.AppendUint16(head, uint16(len(key.Match)))
	h := fnv.New64a()
	for _, part := range [][]byte{head, []byte(key.Match), []byte(b.do)} {
		h.Write(part) // never fails
	}
	return h.Sum64()
}

func bodyOf(f of.Flow) body {
	return body{do: f.Instructions, cookie: f.Cookie, idle: f.IdleTimeout, hard: f.HardTimeout, flags: f.Flags}
}

func flowOf(key of.FlowKey, b body) of.Flow {
	return of.Flow{
		Table: key.Table, Priority: key.Priority, Match: key.Match, Cookie: b.cookie,
		IdleTimeout: b.idle, HardTimeout: b.hard, Flags: b.flags, Instructions: b.do,
	}
}

func same[V comparable](a, b V) bool { return a == b }

func flowKeys(flows []of.Flow) iter.Seq[of.FlowKey] { return keys(flows, of.Flow.Key) }
func groupIDs(groups []of.Group) iter.Seq[uint32]   { return keys(groups, groupID) }
func meterIDs(meters []of.Meter) iter.Seq[uint32]   { return keys(meters, meterID) }
func groupID(g of.Group) uint32                     { return g.ID }
func meterID(m of.Meter) uint32                     { return m.ID }
func itself[T any](v T) T                           { return v }

func keys[T any, K comparable](list []T, key func(T) K) iter.Seq[K] {
	return func(yield func(K) bool) {
		for _, v := range list {
			if !yield(key(v)) {
				return
			}
		}
	}
}

func pairs[T any, K comparable, V any](list []T, key func(T) K, value func(T) V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, v := range list {
			if !yield(key(v), value(v)) {
				return
			}
		}
	}
}
