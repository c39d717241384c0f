package export

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contiv/netplugin/state/flowapi"
)

// ipfix sends records in IPFIX messages (RFC 7011) by UDP. Names are enterprise-specific
// fields of variable length.
type ipfix struct {
	address  string
	conn     net.Conn
	sequence uint32
	told     time.Time // when the templates were sent
}

// enterprise is the number for examples (RFC 5612): this project has none of its own.
const enterprise = 32473

const (
	ipfixVersion  = 10
	templateSet   = 2
	template4     = 256
	template6     = 257
	variable      = 65535
	longestName   = 200
	messageSize   = 1400 // bytes, so that no datagram is cut in pieces
	templateEvery = 30 * time.Second
	headerSize    = 16
)

// field is an information element of the templates.
type field struct {
	id, size   uint16
	enterprise bool
}

// Fields after the addresses (IANA's registry of IPFIX information elements), then ours.
var fields = []field{
	{id: 7, size: 2}, {id: 11, size: 2}, {id: 4, size: 1}, // sourceTransportPort, destinationTransportPort, protocolIdentifier
	{id: 152, size: 8}, {id: 153, size: 8}, {id: 1, size: 8}, {id: 2, size: 8}, // flowStart- and flowEndMilliseconds, octet- and packetDeltaCount
	{id: 89, size: 1}, {id: 236, size: variable}, // forwardingStatus (RFC 7270), VRFname: the tenant
	{1, variable, true}, {2, variable, true}, // names of sender and receiver
	{3, variable, true}, {4, variable, true}, // their groups
	{5, variable, true}, {6, variable, true}, // verdict, what decided
	{7, variable, true}, {8, variable, true}, // hosts, service
}

var addressFields = map[uint16][2]field{
	template4: {{id: 8, size: 4}, {id: 12, size: 4}},
	template6: {{id: 27, size: 16}, {id: 28, size: 16}},
}

func newIPFIX(address string) *ipfix { return &ipfix{address: address} }

func (s *ipfix) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *ipfix) send(ctx context.Context, events []*flowapi.Event) error {
	if s.conn == nil {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "udp", s.address)
		if err != nil {
			return err
		}
		s.conn, s.told = conn, time.Time{}
	}
	err := s.messages(recordsOf(events))
	if err != nil {
		s.close()
	}
	return err
}

// messages sends records in as many messages as it takes.
func (s *ipfix) messages(records []*flowapi.Record) error {
	now := time.Now()
	if now.Sub(s.told) > templateEvery {
		if err := s.write(now, templates(), 0); err != nil {
			return err
		}
		s.told = now
	}
	sets := map[uint16][]byte{}
	counts := map[uint16]uint32{}
	flush := func(id uint16) error {
		if counts[id] == 0 {
			return nil
		}
		err := s.write(now, set(id, sets[id]), counts[id])
		sets[id], counts[id] = nil, 0
		return err
	}
	for _, r := range records {
		id, data := encode(r)
		if id == 0 { // no addresses: not an IP flow
			continue
		}
		if len(sets[id])+len(data)+headerSize+4 > messageSize {
			if err := flush(id); err != nil {
				return err
			}
		}
		sets[id] = append(sets[id], data...)
		counts[id]++
	}
	for _, id := range []uint16{template4, template6} {
		if err := flush(id); err != nil {
			return err
		}
	}
	return nil
}

func (s *ipfix) write(now time.Time, sets []byte, records uint32) error {
	b := binary.BigEndian.AppendUint16(nil, ipfixVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(headerSize+len(sets)))
	b = binary.BigEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.BigEndian.AppendUint32(b, s.sequence)
	b = binary.BigEndian.AppendUint32(b, 1) // observation domain
	s.sequence += records
	_, err := s.conn.Write(append(b, sets...))
	return err
}

// set is a set with its header (RFC 7011 section 3.3.2).
func set(id uint16, data []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = binary.BigEndian.AppendUint16(b, uint16(4+len(data)))
	return append(b, data...)
}

func templates() []byte {
	var b []byte
	for _, id := range []uint16{template4, template6} {
		all := append(append([]field{}, addressFields[id][0], addressFields[id][1]), fields...)
		b = binary.BigEndian.AppendUint16(b, id)
		b = binary.BigEndian.AppendUint16(b, uint16(len(all)))
		for _, f := range all {
			number := f.id
			if f.enterprise {
				number |= 1 << 15
			}
			b = binary.BigEndian.AppendUint16(b, number)
			b = binary.BigEndian.AppendUint16(b, f.size)
			if f.enterprise {
				b = binary.BigEndian.AppendUint32(b, enterprise)
			}
		}
	}
	return set(templateSet, b)
}

var protocolNumbers = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}

// Forwarding status (RFC 7270 section 4.12).
const (
	forwarded = 64
	dropped   = 128
)

// encode is a data record and its template.
func encode(r *flowapi.Record) (template uint16, b []byte) {
	src, dst := r.Src.Address, r.Dst.Address
	switch {
	case src.Is4() && dst.Is4():
		template = template4
	case src.Is6() && dst.Is6():
		template = template6
	default:
		return 0, nil
	}
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, r.Src.Port)
	b = binary.BigEndian.AppendUint16(b, r.Dst.Port)
	b = append(b, protocol(r.Proto))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Start.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(r.End.UnixMilli()))
	packets, status := r.Packets, byte(forwarded)
	if r.Verdict != flowapi.Allowed {
		packets, status = uint64(r.Count), dropped
	}
	b = binary.BigEndian.AppendUint64(b, r.Bytes)
	b = append(binary.BigEndian.AppendUint64(b, packets), status)
	service := ""
	if r.Service != nil {
		service = r.Service.Name
	}
	for _, name := range []string{r.Tenant, r.Src.Name, r.Dst.Name, r.Src.Group, r.Dst.Group, string(r.Verdict), deciders(r), strings.Join(r.Hosts, ","), service} {
		name = short(name)
		b = append(append(b, byte(len(name))), name...)
	}
	return template, b
}

// protocol is the number of a protocol; ARP has none (255).
func protocol(name string) uint8 {
	if n, ok := protocolNumbers[name]; ok {
		return n
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return 255
	}
	return uint8(n)
}

// deciders names what decided, in short.
func deciders(r *flowapi.Record) string {
	var all []string
	for _, d := range r.Decisions {
		text := d.By
		if d.Policy != "" {
			text = strings.TrimSuffix(d.Policy+"/"+d.Rule, "/")
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// short is as much of a name as fits, in whole characters.
func short(s string) string {
	if len(s) <= longestName {
		return s
	}
	s = s[:longestName]
	for s != "" {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}
