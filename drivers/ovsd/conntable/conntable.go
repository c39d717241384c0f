// Package conntable reads the connection table of Open vSwitch as text, which is what
// ovs-appctl dpctl/dump-conntrack prints.
package conntable

import (
	"net/netip"
	"strconv"
	"strings"
)

// Tuple is one direction of a connection. For ICMP, Type and Code take the place of ports,
// and ID is that of an echo.
type Tuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	ID               uint16
	Type, Code       uint8
	Packets, Bytes   uint64 // if the datapath counts
}

// Entry is one line of the table.
type Entry struct {
	Proto          uint8 // IP protocol
	Orig, Reply    Tuple
	Zone           uint16
	Mark           uint32
	LabelLo        uint64 // bits 0 to 63
	LabelHi        uint64
	State          string // of TCP: ESTABLISHED, …
	hasOrig, hasRe bool
}

// Label is 32 bits of the label, from bit at, a multiple of 32.
func (e *Entry) Label(at uint) uint32 {
	if at >= 64 {
		return uint32(e.LabelHi >> (at - 64))
	}
	return uint32(e.LabelLo >> at)
}

// Closed reports whether both ends of a TCP connection have closed it.
func (e *Entry) Closed() bool {
	return e.State == "TIME_WAIT" || e.State == "CLOSED" || e.State == "CLOSE" || e.State == "LAST_ACK"
}

var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132, "udplite": 136, "dccp": 33, "igmp": 2}

// Parse reads a line. It reports false for one that is none. Strings of the entry are parts
// of the line.
func Parse(line string, e *Entry) bool {
	*e = Entry{}
	proto, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ",")
	if !ok {
		return false
	}
	if e.Proto, ok = protocols[proto]; !ok {
		n, err := strconv.ParseUint(proto, 10, 8)
		if err != nil {
			return false
		}
		e.Proto = uint8(n)
	}
	for rest != "" {
		var key, value string
		if key, value, rest, ok = field(rest); !ok || !e.set(key, value) {
			return false
		}
	}
	return e.hasOrig && e.hasRe
}

// field takes the first key=value off a list; a value may be a list in parentheses.
func field(s string) (key, value, rest string, ok bool) {
	key, value, ok = strings.Cut(s, "=")
	if !ok {
		return "", "", "", false
	}
	end, skip := strings.IndexByte(value, ','), 0
	if strings.HasPrefix(value, "(") {
		value = value[1:]
		if end = strings.IndexByte(value, ')'); end < 0 {
			return "", "", "", false
		}
		skip = 1
	}
	if end < 0 {
		return key, value, "", true
	}
	return key, value[:end], strings.TrimPrefix(value[end+skip:], ","), true
}

// set reads a field of an entry; those that nobody asks for are passed over.
func (e *Entry) set(key, value string) (ok bool) {
	var n uint64
	switch key {
	case "orig":
		e.hasOrig = true
		return e.Orig.parse(value)
	case "reply":
		e.hasRe = true
		return e.Reply.parse(value)
	case "zone":
		n, ok = number(value, 16)
		e.Zone = uint16(n)
		return ok
	case "mark":
		n, ok = number(value, 32)
		e.Mark = uint32(n)
		return ok
	case "labels":
		e.LabelHi, e.LabelLo, ok = wide(value)
		return ok
	case "protoinfo":
		for value != "" {
			var k, v string
			if k, v, value, ok = field(value); !ok {
				return false
			}
			if k == "state" || k == "state_orig" {
				e.State = v
			}
		}
	}
	return true
}

func (t *Tuple) parse(s string) bool {
	for s != "" {
		key, value, rest, ok := field(s)
		if !ok {
			return false
		}
		s = rest
		var n uint64
		var err error
		switch key {
		case "src":
			t.Src, err = netip.ParseAddr(value)
		case "dst":
			t.Dst, err = netip.ParseAddr(value)
		case "sport":
			n, ok = number(value, 16)
			t.SrcPort = uint16(n)
		case "dport":
			n, ok = number(value, 16)
			t.DstPort = uint16(n)
		case "id":
			n, ok = number(value, 16)
			t.ID = uint16(n)
		case "type":
			n, ok = number(value, 8)
			t.Type = uint8(n)
		case "code":
			n, ok = number(value, 8)
			t.Code = uint8(n)
		case "packets":
			t.Packets, ok = number(value, 64)
		case "bytes":
			t.Bytes, ok = number(value, 64)
		}
		if !ok || err != nil {
			return false
		}
	}
	return t.Src.IsValid() && t.Dst.IsValid()
}

func number(s string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(s, 0, bits)
	return n, err == nil
}

// wide reads a hexadecimal number of up to 128 bits.
func wide(s string) (hi, lo uint64, ok bool) {
	s, hex := strings.CutPrefix(s, "0x")
	if !hex || s == "" || len(s) > 32 {
		return 0, 0, false
	}
	cut := max(0, len(s)-16)
	lo, err := strconv.ParseUint(s[cut:], 16, 64)
	if err == nil && cut > 0 {
		hi, err = strconv.ParseUint(s[:cut], 16, 64)
	}
	return hi, lo, err == nil
}
