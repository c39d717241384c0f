package libopenflow

import (
	"encoding/binary"
	"net/netip"
)

// FlushCT forgets the tracked connections that agree with all that is given (message
// 32 of the Nicira extension, Open vSwitch 3.1 and later). The zero value of a field
// means any.
type FlushCT struct {
	Proto   uint8 // IP protocol
	Zone    uint16
	AnyZone bool    // Zone is not looked at
	Orig    CTTuple // of packets in the direction of the first one
	Reply   CTTuple // of packets in the other direction
}

// CTTuple names one direction of a tracked connection.
type CTTuple struct {
	Src, Dst         netip.Addr // both of one family
	SrcPort, DstPort uint16     // of TCP, UDP and SCTP
}

// Properties of FlushCT and of a tuple.
const (
	ctFlushOrig  = 0
	ctFlushReply = 1
	ctFlushZone  = 2

	ctTupleSrc     = 0
	ctTupleDst     = 1
	ctTupleSrcPort = 2
	ctTupleDstPort = 3
)

// Type returns TypeExperimenter.
func (*FlushCT) Type() MsgType { return TypeExperimenter }

func (m *FlushCT) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = vendor(b, nxVendor, nxtFlushCT)
	b = append(b, m.Proto, 0, 0, 0, 0, 0, 0, 0)
	b = m.Orig.append(b, ctFlushOrig)
	b = m.Reply.append(b, ctFlushReply)
	if !m.AnyZone {
		b = prop16(b, ctFlushZone, m.Zone)
	}
	return b, nil
}

// append writes the tuple as a property that holds properties; nothing if it is empty.
func (t CTTuple) append(b []byte, typ uint16) []byte {
	if t == (CTTuple{}) {
		return b
	}
	at := len(b)
	b = append(actionHeader(b, typ, 0), 0, 0, 0, 0)
	for _, x := range [...]struct {
		typ  uint16
		addr netip.Addr
	}{{ctTupleSrc, t.Src}, {ctTupleDst, t.Dst}} {
		if x.addr.IsValid() {
			a := x.addr.As16() // an IPv4 address goes as one mapped into IPv6
			b = append(actionHeader(b, x.typ, 20), a[:]...)
			b = append(b, 0, 0, 0, 0)
		}
	}
	if t.SrcPort != 0 {
		b = prop16(b, ctTupleSrcPort, t.SrcPort)
	}
	if t.DstPort != 0 {
		b = prop16(b, ctTupleDstPort, t.DstPort)
	}
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// property reads one property, whose content is a reader of its own.
func (r *reader) property() (typ uint16, content *reader) {
	typ, n := r.u16(), int(r.u16())
	content = r.sub(n - 4)
	if r.err == nil {
		r.skip(min((n+7)/8*8-n, len(r.b)))
	}
	return typ, content
}

func decodeFlushCT(r *reader) *FlushCT {
	m := &FlushCT{Proto: r.u8(), AnyZone: true}
	r.skip(7)
	for r.more() {
		typ, p := r.property()
		switch typ {
		case ctFlushOrig:
			m.Orig = p.tuple()
		case ctFlushReply:
			m.Reply = p.tuple()
		case ctFlushZone:
			m.Zone, m.AnyZone = p.u16(), false
		}
		r.fail(p.err)
	}
	return m
}

func (r *reader) tuple() (t CTTuple) {
	r.skip(4)
	for r.more() {
		typ, p := r.property()
		switch typ {
		case ctTupleSrc:
			t.Src = p.mappedAddr()
		case ctTupleDst:
			t.Dst = p.mappedAddr()
		case ctTupleSrcPort:
			t.SrcPort = p.u16()
		case ctTupleDstPort:
			t.DstPort = p.u16()
		}
		r.fail(p.err)
	}
	return t
}

// mappedAddr reads 16 bytes; an IPv4 address mapped into IPv6 is an IPv4 address.
func (r *reader) mappedAddr() netip.Addr {
	a, _ := netip.AddrFromSlice(r.take(16))
	return a.Unmap()
}
