package libopenflow

import (
	"encoding/binary"
	"net/netip"
)

// Helpers of connection tracking by their well-known port.
const (
	algFTP  = 21
	algTFTP = 69
)

func appendCT(b []byte, r *reader) []byte {
	flags := r.u16()
	zoneField := r.u32()
	zone := r.u16()
	table := r.u8()
	r.skip(3)
	alg := r.u16()
	b = append(b, "ct("...)
	at := len(b)
	if flags&ctCommit != 0 {
		b = append(b, "commit,"...)
	}
	if flags&ctForce != 0 {
		b = append(b, "force,"...)
	}
	if table != ctNoTable {
		b = append(appendDec(append(b, "table="...), uint64(table)), ',')
	}
	if zoneField != 0 {
		s := Subfield{fieldOfSub(zoneField), zone >> 6, zone&0x3f + 1}
		if !s.ok() {
			return nil
		}
		b = append(s.appendText(append(b, "zone="...)), ',')
	} else if zone != 0 {
		b = append(appendDec(append(b, "zone="...), uint64(zone)), ',')
	}
	nested := r.take(len(r.b))
	if nat, rest := cutNAT(nested); nat != nil {
		b = append(appendAction(b, nat), ',')
		nested = rest
	}
	switch alg {
	case 0:
	case algFTP:
		b = append(b, "alg=ftp,"...)
	case algTFTP:
		b = append(b, "alg=tftp,"...)
	default:
		b = append(appendDec(append(b, "alg="...), uint64(alg)), ',')
	}
	if len(nested) > 0 {
		b = append(appendActionList(append(b, "exec("...), nested), "),"...)
	}
	if len(b) > at {
		b = b[:len(b)-1]
	}
	return append(b, ')')
}

// cutNAT takes a nat action off the front of a ct action's list.
func cutNAT(list []byte) (nat, rest []byte) {
	if len(list) < 16 || binary.BigEndian.Uint16(list) != actExperimenter ||
		binary.BigEndian.Uint32(list[4:]) != nxVendor || binary.BigEndian.Uint16(list[8:]) != nxNAT {
		return nil, list
	}
	n := int(binary.BigEndian.Uint16(list[2:]))
	if n < 16 || n > len(list) {
		return nil, list
	}
	return list[:n], list[n:]
}

func appendNAT(b []byte, r *reader) []byte {
	r.skip(2)
	flags, present := NATFlags(r.u16()), r.u16()
	addr := func(v4, v6 uint16) (a netip.Addr) {
		if present&v4 != 0 {
			a, _ = netip.AddrFromSlice(r.take(4))
		}
		if present&v6 != 0 {
			a, _ = netip.AddrFromSlice(r.take(16))
		}
		return a
	}
	// The values come in the order of the bits, the IPv4 ones first.
	lo := addr(natV4Min, 0)
	hi := addr(natV4Max, 0)
	if present&(natV4Min|natV4Max) == 0 {
		lo, hi = addr(0, natV6Min), addr(0, natV6Max)
	}
	var minPort, maxPort uint16
	if present&natPortMin != 0 {
		minPort = r.u16()
	}
	if present&natPortMax != 0 {
		maxPort = r.u16()
	}
	b = append(b, "nat"...)
	if flags&(natSrc|natDst) == 0 {
		return b
	}
	b = append(b, "(src"...)
	if flags&natDst != 0 {
		copy(b[len(b)-3:], "dst")
	}
	if lo.IsValid() || minPort != 0 {
		b = append(b, '=')
	}
	if lo.IsValid() {
		b = ipv6Bracket(b, lo, minPort != 0)
	}
	if hi.IsValid() && hi != lo {
		b = ipv6Bracket(append(b, '-'), hi, minPort != 0)
	}
	if minPort != 0 {
		b = appendDec(append(b, ':'), uint64(minPort))
		if maxPort != 0 && maxPort != minPort {
			b = appendDec(append(b, '-'), uint64(maxPort))
		}
	}
	for _, f := range [...]struct {
		bit  NATFlags
		name string
	}{{NATPersistent, ",persistent"}, {NATHash, ",hash"}, {NATRandom, ",random"}} {
		if flags&f.bit != 0 {
			b = append(b, f.name...)
		}
	}
	return append(b, ')')
}
