package libopenflow

import (
	"encoding/binary"
	"time"
)

// GroupDescList is the body of a MultipartGroupDesc reply.
type GroupDescList []Group

const groupDescHeaderLen = 8

func (s GroupDescList) appendMultipart(b []byte) []byte {
	for _, g := range s {
		b = binary.BigEndian.AppendUint16(b, uint16(groupDescHeaderLen+len(g.Buckets)))
		b = append(b, byte(g.Type), 0)
		b = binary.BigEndian.AppendUint32(b, g.ID)
		b = append(b, g.Buckets...)
	}
	return b
}

func decodeGroupDesc(r *reader) (s GroupDescList) {
	for r.more() {
		n := int(r.u16())
		g := Group{Type: GroupType(r.u8())}
		r.skip(1)
		g.ID = r.u32()
		g.Buckets = r.buckets(n - groupDescHeaderLen)
		s = append(s, g)
	}
	return s
}

// Counter counts packets.
type Counter struct{ Packets, Bytes uint64 }

// GroupStats are the counters of a group.
type GroupStats struct {
	ID   uint32
	Refs uint32 // flows and groups that use it
	Counter
	Age     time.Duration
	Buckets []Counter
}

// GroupStatsList is the body of a MultipartGroupStats reply.
type GroupStatsList []GroupStats

const groupStatsHeaderLen = 40

func (s GroupStatsList) appendMultipart(b []byte) []byte {
	for _, g := range s {
		b = binary.BigEndian.AppendUint16(b, uint16(groupStatsHeaderLen+16*len(g.Buckets)))
		b = append(b, 0, 0)
		b = binary.BigEndian.AppendUint32(b, g.ID)
		b = append(binary.BigEndian.AppendUint32(b, g.Refs), 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, g.Packets)
		b = binary.BigEndian.AppendUint64(b, g.Bytes)
		b = appendDuration(b, g.Age)
		for _, c := range g.Buckets {
			b = binary.BigEndian.AppendUint64(b, c.Packets)
			b = binary.BigEndian.AppendUint64(b, c.Bytes)
		}
	}
	return b
}

func decodeGroupStats(r *reader) (s GroupStatsList) {
	for r.more() {
		e := r.sub(int(r.u16()) - 2)
		e.skip(2)
		g := GroupStats{ID: e.u32(), Refs: e.u32()}
		e.skip(4)
		g.Packets, g.Bytes = e.u64(), e.u64()
		g.Age = e.duration()
		for e.more() {
			g.Buckets = append(g.Buckets, Counter{e.u64(), e.u64()})
		}
		r.fail(e.err)
		s = append(s, g)
	}
	return s
}

// MeterConfigList is the body of a MultipartMeterConfig reply.
type MeterConfigList []Meter

const meterConfigHeaderLen = 8

func (s MeterConfigList) appendMultipart(b []byte) []byte {
	for _, m := range s {
		b = binary.BigEndian.AppendUint16(b, uint16(meterConfigHeaderLen+len(m.Bands)))
		b = binary.BigEndian.AppendUint16(b, uint16(m.Flags))
		b = binary.BigEndian.AppendUint32(b, m.ID)
		b = append(b, m.Bands...)
	}
	return b
}

func decodeMeterConfig(r *reader) (s MeterConfigList) {
	for r.more() {
		n := int(r.u16())
		m := Meter{Flags: MeterFlags(r.u16()), ID: r.u32()}
		m.Bands = r.bands(n - meterConfigHeaderLen)
		if m.Flags&MeterBurst == 0 {
			m.Bands = m.Bands.withoutBursts()
		}
		s = append(s, m)
	}
	return s
}

// MeterStats are the counters of a meter.
type MeterStats struct {
	ID    uint32
	Flows uint32 // that use it
	In    Counter
	Age   time.Duration
	Bands []Counter // what exceeded each band's rate
}

// MeterStatsList is the body of a MultipartMeterStats reply.
type MeterStatsList []MeterStats

const meterStatsHeaderLen = 40

func (s MeterStatsList) appendMultipart(b []byte) []byte {
	for _, m := range s {
		b = binary.BigEndian.AppendUint32(b, m.ID)
		b = binary.BigEndian.AppendUint16(b, uint16(meterStatsHeaderLen+16*len(m.Bands)))
		b = append(b, 0, 0, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, m.Flows)
		b = binary.BigEndian.AppendUint64(b, m.In.Packets)
		b = binary.BigEndian.AppendUint64(b, m.In.Bytes)
		b = appendDuration(b, m.Age)
		for _, c := range m.Bands {
			b = binary.BigEndian.AppendUint64(b, c.Packets)
			b = binary.BigEndian.AppendUint64(b, c.Bytes)
		}
	}
	return b
}

func decodeMeterStats(r *reader) (s MeterStatsList) {
	for r.more() {
		m := MeterStats{ID: r.u32()}
		e := r.sub(int(r.u16()) - 6)
		e.skip(6)
		m.Flows = e.u32()
		m.In = Counter{e.u64(), e.u64()}
		m.Age = e.duration()
		for e.more() {
			m.Bands = append(m.Bands, Counter{e.u64(), e.u64()})
		}
		r.fail(e.err)
		s = append(s, m)
	}
	return s
}
