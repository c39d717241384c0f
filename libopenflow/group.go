package libopenflow

import (
	"encoding/binary"
	"iter"
)

// GroupType says how a group uses its buckets.
type GroupType uint8

// Group types.
const (
	GroupTypeAll          GroupType = 0 // each bucket gets a copy
	GroupTypeSelect       GroupType = 1 // one bucket, by a hash and the weights
	GroupTypeIndirect     GroupType = 2 // the only bucket
	GroupTypeFastFailover GroupType = 3 // the first bucket that is alive
)

// Group is one row of the group table as a comparable value.
type Group struct {
	ID      uint32 // below GroupMax
	Type    GroupType
	Buckets Buckets
}

// GroupMax is the first number that is no group id.
const GroupMax uint32 = 0xffffff00

// Bucket is one action list of a group.
type Bucket struct {
	Weight     uint16 // share of a select group; 0 in other groups
	WatchPort  uint32 // fast failover: port whose state decides; PortAny for none
	WatchGroup uint32 // fast failover: group whose state decides; GroupAny for none
	Actions    Actions
}

// Buckets is a list of buckets as on the wire (OpenFlow 1.3 §7.3.4.2). It is
// immutable: every method returns a longer list.
type Buckets string

// NewBuckets returns the empty list.
func NewBuckets() Buckets { return "" }

const bucketHeaderLen = 16

// Add appends a bucket of an all or indirect group.
func (s Buckets) Add(a Actions) Buckets {
	return s.AddBucket(Bucket{WatchPort: PortAny, WatchGroup: GroupAny, Actions: a})
}

// AddWeighted appends a bucket of a select group with a share of weight.
func (s Buckets) AddWeighted(weight uint16, a Actions) Buckets {
	return s.AddBucket(Bucket{Weight: weight, WatchPort: PortAny, WatchGroup: GroupAny, Actions: a})
}

// AddWatched appends a bucket of a fast-failover group that is alive while port is.
func (s Buckets) AddWatched(port uint32, a Actions) Buckets {
	return s.AddBucket(Bucket{WatchPort: port, WatchGroup: GroupAny, Actions: a})
}

// AddBucket appends a bucket.
func (s Buckets) AddBucket(k Bucket) Buckets {
	var buf [128]byte
	b := binary.BigEndian.AppendUint16(buf[:0], uint16(bucketHeaderLen+len(k.Actions)))
	b = binary.BigEndian.AppendUint16(b, k.Weight)
	b = binary.BigEndian.AppendUint32(b, k.WatchPort)
	b = binary.BigEndian.AppendUint32(b, k.WatchGroup)
	b = append(b, 0, 0, 0, 0)
	return s + Buckets(append(b, k.Actions...))
}

// All iterates over the buckets.
func (s Buckets) All() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for r := (&reader{b: []byte(s)}); r.more(); {
			n := int(r.u16())
			k := Bucket{Weight: r.u16(), WatchPort: r.u32(), WatchGroup: r.u32()}
			r.skip(4)
			k.Actions = Actions(r.take(n - bucketHeaderLen))
			if r.err != nil || !yield(k) {
				return
			}
		}
	}
}

// buckets reads the n bytes of a bucket list and checks them.
func (r *reader) buckets(n int) Buckets {
	s := r.sub(n)
	all := string(s.b)
	for s.more() {
		m := int(s.u16())
		s.skip(bucketHeaderLen - 2)
		_, err := decodeActions(s.take(m - bucketHeaderLen))
		s.fail(err)
	}
	r.fail(s.err)
	if s.err != nil {
		return ""
	}
	return Buckets(all)
}

// GroupCommand says what a GroupMod does.
type GroupCommand uint16

// Group commands.
const (
	GroupAdd    GroupCommand = 0
	GroupModify GroupCommand = 1
	GroupDelete GroupCommand = 2
)

// GroupMod changes the group table (OpenFlow 1.3 §7.3.4.2).
type GroupMod struct {
	Command GroupCommand
	Group   Group
}

// AddGroup returns the group-mod that adds g; a group of that id is an error.
func AddGroup(g Group) *GroupMod { return &GroupMod{Command: GroupAdd, Group: g} }

// ModifyGroup returns the group-mod that replaces the group of g's id.
func ModifyGroup(g Group) *GroupMod { return &GroupMod{Command: GroupModify, Group: g} }

// DeleteGroup returns the group-mod that removes a group, and with it every flow that
// refers to it; GroupAll removes all.
func DeleteGroup(id uint32) *GroupMod {
	return &GroupMod{Command: GroupDelete, Group: Group{ID: id}}
}

// Type returns TypeGroupMod.
func (*GroupMod) Type() MsgType { return TypeGroupMod }

func (m *GroupMod) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(m.Command))
	b = append(b, byte(m.Group.Type), 0)
	b = binary.BigEndian.AppendUint32(b, m.Group.ID)
	return append(b, m.Group.Buckets...), nil
}

func decodeGroupMod(r *reader) *GroupMod {
	m := &GroupMod{Command: GroupCommand(r.u16())}
	m.Group.Type = GroupType(r.u8())
	r.skip(1)
	m.Group.ID = r.u32()
	m.Group.Buckets = r.buckets(len(r.b))
	return m
}
