package libopenflow

import (
	"encoding/binary"
	"time"
)

// FlowCommand says what a FlowMod does.
type FlowCommand uint8

// Commands of flow-mods. The strict ones touch the flow with exactly this match and
// priority, the others every flow whose match is the same or more specific.
const (
	FlowAdd          FlowCommand = 0
	FlowModify       FlowCommand = 1
	FlowModifyStrict FlowCommand = 2
	FlowDelete       FlowCommand = 3
	FlowDeleteStrict FlowCommand = 4
)

// FlowMod changes a flow table (OpenFlow 1.3 §7.3.4.1). AddFlow, DeleteFlow and
// DeleteFlows make the usual ones.
type FlowMod struct {
	Command    FlowCommand
	Flow       Flow
	CookieMask uint64 // modify and delete: only flows whose cookie agrees in these bits
	OutPort    uint32 // delete: only flows with this output; PortAny for all
	OutGroup   uint32 // delete: only flows with this group; GroupAny for all
	Buffer     uint32 // packet to run through the flow; NoBuffer for none
}

// AddFlow returns the flow-mod that adds f, replacing the flow of the same key; the
// counters of a replaced flow live on unless f has FlowResetCounts.
func AddFlow(f Flow) *FlowMod { return flowMod(FlowAdd, f) }

// ModifyFlow returns the flow-mod that gives the flow of f's key f's instructions,
// and nothing else of f; it does nothing when there is no such flow.
func ModifyFlow(f Flow) *FlowMod { return flowMod(FlowModifyStrict, f) }

// DeleteFlow returns the flow-mod that removes the one flow of key k.
func DeleteFlow(k FlowKey) *FlowMod {
	return flowMod(FlowDeleteStrict, Flow{Table: k.Table, Priority: k.Priority, Match: k.Match})
}

// DeleteFlows returns the flow-mod that removes the flows of a table, TableAll for
// every table, whose cookies agree with cookie in the bits of mask.
func DeleteFlows(table uint8, cookie, mask uint64) *FlowMod {
	m := flowMod(FlowDelete, Flow{Table: table, Cookie: cookie})
	m.CookieMask = mask
	return m
}

func flowMod(c FlowCommand, f Flow) *FlowMod {
	return &FlowMod{Command: c, Flow: f, OutPort: PortAny, OutGroup: GroupAny, Buffer: NoBuffer}
}

// Type returns TypeFlowMod.
func (*FlowMod) Type() MsgType { return TypeFlowMod }

func (m *FlowMod) appendBody(b []byte, _ uint32) ([]byte, error) {
	f := &m.Flow
	b = binary.BigEndian.AppendUint64(b, f.Cookie)
	b = binary.BigEndian.AppendUint64(b, m.CookieMask)
	b = append(b, f.Table, byte(m.Command))
	b = binary.BigEndian.AppendUint16(b, f.IdleTimeout)
	b = binary.BigEndian.AppendUint16(b, f.HardTimeout)
	b = binary.BigEndian.AppendUint16(b, f.Priority)
	b = binary.BigEndian.AppendUint32(b, m.Buffer)
	b = binary.BigEndian.AppendUint32(b, m.OutPort)
	b = binary.BigEndian.AppendUint32(b, m.OutGroup)
	b = binary.BigEndian.AppendUint16(b, f.Flags)
	b = append(b, 0, 0)
	b = f.Match.append(b)
	return append(b, f.Instructions...), nil
}

func decodeFlowMod(r *reader) *FlowMod {
	m := &FlowMod{}
	m.Flow.Cookie, m.CookieMask = r.u64(), r.u64()
	m.Flow.Table, m.Command = r.u8(), FlowCommand(r.u8())
	m.Flow.IdleTimeout, m.Flow.HardTimeout, m.Flow.Priority = r.u16(), r.u16(), r.u16()
	m.Buffer, m.OutPort, m.OutGroup = r.u32(), r.u32(), r.u32()
	m.Flow.Flags = r.u16()
	r.skip(2)
	m.Flow.Match = r.match()
	m.Flow.Instructions = r.instructions()
	return m
}

// FlowRemovedReason says why a flow went.
type FlowRemovedReason uint8

// Reasons of flow-removed messages.
const (
	RemovedIdleTimeout FlowRemovedReason = 0
	RemovedHardTimeout FlowRemovedReason = 1
	RemovedDelete      FlowRemovedReason = 2
	RemovedGroupDelete FlowRemovedReason = 3
)

// FlowRemoved reports that a flow with FlowSendRemoved went (OpenFlow 1.3 §7.4.2).
type FlowRemoved struct {
	Reason         FlowRemovedReason
	Table          uint8
	Priority       uint16
	Cookie         uint64
	Duration       time.Duration // how long the flow lived
	IdleTimeout    uint16        // s
	HardTimeout    uint16        // s
	Packets, Bytes uint64
	Match          Match
}

// Type returns TypeFlowRemoved.
func (*FlowRemoved) Type() MsgType { return TypeFlowRemoved }

func (m *FlowRemoved) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, m.Cookie)
	b = binary.BigEndian.AppendUint16(b, m.Priority)
	b = append(b, byte(m.Reason), m.Table)
	b = appendDuration(b, m.Duration)
	b = binary.BigEndian.AppendUint16(b, m.IdleTimeout)
	b = binary.BigEndian.AppendUint16(b, m.HardTimeout)
	b = binary.BigEndian.AppendUint64(b, m.Packets)
	b = binary.BigEndian.AppendUint64(b, m.Bytes)
	return m.Match.append(b), nil
}

func decodeFlowRemoved(r *reader) *FlowRemoved {
	m := &FlowRemoved{Cookie: r.u64(), Priority: r.u16(), Reason: FlowRemovedReason(r.u8()), Table: r.u8()}
	m.Duration = r.duration()
	m.IdleTimeout, m.HardTimeout = r.u16(), r.u16()
	m.Packets, m.Bytes = r.u64(), r.u64()
	m.Match = r.match()
	return m
}

// duration reads seconds and nanoseconds; the latter stay below a second.
func (r *reader) duration() time.Duration {
	d := time.Duration(r.u32()) * time.Second
	return d + min(time.Duration(r.u32()), time.Second-1)
}

func appendDuration(b []byte, d time.Duration) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(d/time.Second))
	return binary.BigEndian.AppendUint32(b, uint32(d%time.Second))
}
