package libopenflow

import (
	"encoding/binary"
)

// MultipartType is the kind of a multipart request and its replies.
type MultipartType uint16

// Multipart types (OpenFlow 1.3 §7.3.5).
const (
	MultipartDesc        MultipartType = 0
	MultipartFlow        MultipartType = 1
	MultipartAggregate   MultipartType = 2
	MultipartTable       MultipartType = 3
	MultipartPortStats   MultipartType = 4
	MultipartGroupStats  MultipartType = 6
	MultipartGroupDesc   MultipartType = 7
	MultipartMeterStats  MultipartType = 9
	MultipartMeterConfig MultipartType = 10
	MultipartPortDesc    MultipartType = 13
)

// multipartMore says that further replies follow.
const multipartMore = 1

// MultipartRequest asks for descriptions or statistics.
type MultipartRequest struct {
	Kind MultipartType
	// Flows narrows MultipartFlow and MultipartAggregate; nil asks for all flows.
	Flows *FlowRequest
	// ID narrows MultipartPortStats to a port, MultipartGroupStats to a group and
	// the meter kinds to a meter; AllIDs asks for all.
	ID uint32
	// Body is the body of a request of any other kind.
	Body []byte
}

// AllIDs asks for all ports, groups or meters in a MultipartRequest.
const AllIDs = 0xffffffff

// FlowRequest says which flows to report (OpenFlow 1.3 §7.3.5.2).
type FlowRequest struct {
	Table    uint8 // TableAll for all
	OutPort  uint32
	OutGroup uint32
	Cookie   uint64
	Mask     uint64 // only flows whose cookie agrees with Cookie in these bits
	Match    Match  // only flows that are the same or more specific
}

// AllFlows returns the request for the flows of every table whose cookies agree with
// cookie in the bits of mask.
func AllFlows(cookie, mask uint64) *FlowRequest {
	return &FlowRequest{Table: TableAll, OutPort: PortAny, OutGroup: GroupAny, Cookie: cookie, Mask: mask}
}

// Type returns TypeMultipartRequest.
func (*MultipartRequest) Type() MsgType { return TypeMultipartRequest }

func (m *MultipartRequest) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(m.Kind))
	b = append(b, 0, 0, 0, 0, 0, 0)
	switch m.Kind {
	case MultipartFlow, MultipartAggregate:
		q := m.Flows
		if q == nil {
			q = AllFlows(0, 0)
		}
		b = append(b, q.Table, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, q.OutPort)
		b = binary.BigEndian.AppendUint32(b, q.OutGroup)
		b = append(b, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, q.Cookie)
		b = binary.BigEndian.AppendUint64(b, q.Mask)
		b = q.Match.append(b)
	case MultipartPortStats, MultipartMeterStats, MultipartMeterConfig:
		b = append(binary.BigEndian.AppendUint32(b, m.ID), 0, 0, 0, 0)
	case MultipartGroupStats:
		id := m.ID
		if id == AllIDs {
			id = GroupAll
		}
		b = append(binary.BigEndian.AppendUint32(b, id), 0, 0, 0, 0)
	default:
		b = append(b, m.Body...)
	}
	return b, nil
}

func decodeMultipartRequest(r *reader) *MultipartRequest {
	m := &MultipartRequest{Kind: MultipartType(r.u16())}
	r.skip(6)
	switch m.Kind {
	case MultipartFlow, MultipartAggregate:
		q := &FlowRequest{Table: r.u8()}
		r.skip(3)
		q.OutPort, q.OutGroup = r.u32(), r.u32()
		r.skip(4)
		q.Cookie, q.Mask = r.u64(), r.u64()
		q.Match = r.match()
		m.Flows = q
	case MultipartPortStats, MultipartMeterStats, MultipartMeterConfig:
		m.ID = r.u32()
	case MultipartGroupStats:
		if m.ID = r.u32(); m.ID == GroupAll {
			m.ID = AllIDs
		}
	default:
		m.Body = r.rest()
	}
	return m
}

// MultipartReply is one of the messages that answer a MultipartRequest.
type MultipartReply struct {
	Kind MultipartType
	More bool // further replies with the same transaction id follow
	Body MultipartBody
}

// MultipartBody is the content of a MultipartReply: one of *Desc, FlowStatsList,
// *AggregateStats, TableStatsList, PortStatsList, GroupStatsList, GroupDescList,
// MeterStatsList, MeterConfigList, PortDescList, or RawBody for an unknown kind.
type MultipartBody interface{ appendMultipart(b []byte) []byte }

// RawBody is the content of a reply of unknown kind.
type RawBody []byte

func (s RawBody) appendMultipart(b []byte) []byte { return append(b, s...) }

// Type returns TypeMultipartReply.
func (*MultipartReply) Type() MsgType { return TypeMultipartReply }

func (m *MultipartReply) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(m.Kind))
	var flags uint16
	if m.More {
		flags = multipartMore
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 0, 0, 0, 0)
	if m.Body == nil {
		return b, nil
	}
	return m.Body.appendMultipart(b), nil
}

func decodeMultipartReply(r *reader) *MultipartReply {
	m := &MultipartReply{Kind: MultipartType(r.u16()), More: r.u16()&multipartMore != 0}
	r.skip(4)
	switch m.Kind {
	case MultipartDesc:
		m.Body = decodeDesc(r)
	case MultipartFlow:
		m.Body = decodeFlowStats(r)
	case MultipartAggregate:
		m.Body = decodeAggregate(r)
	case MultipartTable:
		m.Body = decodeTableStats(r)
	case MultipartPortStats:
		m.Body = decodePortStats(r)
	case MultipartGroupStats:
		m.Body = decodeGroupStats(r)
	case MultipartGroupDesc:
		m.Body = decodeGroupDesc(r)
	case MultipartMeterStats:
		m.Body = decodeMeterStats(r)
	case MultipartMeterConfig:
		m.Body = decodeMeterConfig(r)
	case MultipartPortDesc:
		m.Body = decodePortDesc(r)
	default:
		m.Body = RawBody(r.rest())
	}
	return m
}
