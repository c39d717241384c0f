package libopenflow

import (
	"encoding/binary"
	"time"
)

// FlowStats is a flow with its counters.
type FlowStats struct {
	Flow
	Age            time.Duration
	Packets, Bytes uint64
}

// FlowStatsList is the body of a MultipartFlow reply.
type FlowStatsList []FlowStats

func (s FlowStatsList) appendMultipart(b []byte) []byte {
	for i := range s {
		f, at := &s[i], len(b)
		b = append(b, 0, 0, f.Table, 0)
		b = appendDuration(b, f.Age)
		b = binary.BigEndian.AppendUint16(b, f.Priority)
		b = binary.BigEndian.AppendUint16(b, f.IdleTimeout)
		b = binary.BigEndian.AppendUint16(b, f.HardTimeout)
		b = binary.BigEndian.AppendUint16(b, f.Flags)
		b = append(b, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, f.Cookie)
		b = binary.BigEndian.AppendUint64(b, f.Packets)
		b = binary.BigEndian.AppendUint64(b, f.Bytes)
		b = f.Match.append(b)
		b = append(b, f.Instructions...)
		binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at))
	}
	return b
}

func decodeFlowStats(r *reader) FlowStatsList {
	s := make(FlowStatsList, 0, len(r.b)/96)
	for r.more() {
		n := int(r.u16())
		e := r.sub(n - 2)
		var f FlowStats
		f.Table = e.u8()
		e.skip(1)
		f.Age = e.duration()
		f.Priority, f.IdleTimeout, f.HardTimeout, f.Flags = e.u16(), e.u16(), e.u16(), e.u16()
		e.skip(4)
		f.Cookie, f.Packets, f.Bytes = e.u64(), e.u64(), e.u64()
		f.Match = e.match()
		f.Instructions = e.instructions()
		r.fail(e.err)
		s = append(s, f)
	}
	return s
}

// Desc is the body of a MultipartDesc reply.
type Desc struct{ Manufacturer, Hardware, Software, Serial, Datapath string }

const (
	descLen   = 256
	serialLen = 32
)

func (d *Desc) appendMultipart(b []byte) []byte {
	b = appendText(b, d.Manufacturer, descLen)
	b = appendText(b, d.Hardware, descLen)
	b = appendText(b, d.Software, descLen)
	b = appendText(b, d.Serial, serialLen)
	return appendText(b, d.Datapath, descLen)
}

func decodeDesc(r *reader) *Desc {
	return &Desc{r.text(descLen), r.text(descLen), r.text(descLen), r.text(serialLen), r.text(descLen)}
}

// AggregateStats is the body of a MultipartAggregate reply.
type AggregateStats struct {
	Packets, Bytes uint64
	Flows          uint32
}

func (s *AggregateStats) appendMultipart(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, s.Packets)
	b = binary.BigEndian.AppendUint64(b, s.Bytes)
	return append(binary.BigEndian.AppendUint32(b, s.Flows), 0, 0, 0, 0)
}

func decodeAggregate(r *reader) *AggregateStats {
	return &AggregateStats{r.u64(), r.u64(), r.u32()}
}

// TableStats are the counters of a flow table.
type TableStats struct {
	Table         uint8
	Active        uint32 // flows
	Lookups, Hits uint64 // packets
}

// TableStatsList is the body of a MultipartTable reply.
type TableStatsList []TableStats

func (s TableStatsList) appendMultipart(b []byte) []byte {
	for _, t := range s {
		b = append(b, t.Table, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, t.Active)
		b = binary.BigEndian.AppendUint64(b, t.Lookups)
		b = binary.BigEndian.AppendUint64(b, t.Hits)
	}
	return b
}

func decodeTableStats(r *reader) (s TableStatsList) {
	for r.more() {
		t := TableStats{Table: r.u8()}
		r.skip(3)
		t.Active, t.Lookups, t.Hits = r.u32(), r.u64(), r.u64()
		s = append(s, t)
	}
	return s
}

// PortStats are the counters of a port.
type PortStats struct {
	Port                 uint32
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64
	RxFrameErr           uint64
	RxOverErr            uint64
	RxCRCErr             uint64
	Collisions           uint64
	Age                  time.Duration
}

// PortStatsList is the body of a MultipartPortStats reply.
type PortStatsList []PortStats

func (p *PortStats) counters() [12]*uint64 {
	return [12]*uint64{
		&p.RxPackets, &p.TxPackets, &p.RxBytes, &p.TxBytes, &p.RxDropped, &p.TxDropped,
		&p.RxErrors, &p.TxErrors, &p.RxFrameErr, &p.RxOverErr, &p.RxCRCErr, &p.Collisions,
	}
}

func (s PortStatsList) appendMultipart(b []byte) []byte {
	for i := range s {
		b = append(binary.BigEndian.AppendUint32(b, s[i].Port), 0, 0, 0, 0)
		for _, c := range s[i].counters() {
			b = binary.BigEndian.AppendUint64(b, *c)
		}
		b = appendDuration(b, s[i].Age)
	}
	return b
}

func decodePortStats(r *reader) (s PortStatsList) {
	for r.more() {
		p := PortStats{Port: r.u32()}
		r.skip(4)
		for _, c := range p.counters() {
			*c = r.u64()
		}
		p.Age = r.duration()
		s = append(s, p)
	}
	return s
}

// PortDescList is the body of a MultipartPortDesc reply.
type PortDescList []Port

func (s PortDescList) appendMultipart(b []byte) []byte {
	for i := range s {
		b = s[i].append(b)
	}
	return b
}

func decodePortDesc(r *reader) (s PortDescList) {
	for r.more() {
		s = append(s, r.port())
	}
	return s
}
