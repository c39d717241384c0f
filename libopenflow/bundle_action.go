package libopenflow

import "encoding/binary"

// BundleAlgorithm chooses a member of a Bundle.
type BundleAlgorithm uint16

// Algorithms of bundle actions.
const (
	BundleActiveBackup BundleAlgorithm = 0 // the first that is up
	BundleHRW          BundleAlgorithm = 1 // by highest random weight of a hash
)

// Bundle is the bundle or bundle_load action: choose a port that is up. It has
// nothing to do with bundles of messages.
type Bundle struct {
	Fields    HashFields
	Basis     uint16
	Algorithm BundleAlgorithm
	Members   []uint16 // OpenFlow port numbers
	Dst       Subfield // where to store the port; the zero Subfield outputs to it
}

// Bundle outputs to, or stores, a member that is up.
func (a Actions) Bundle(x Bundle) Actions {
	load := x.Dst != Subfield{}
	if load && !x.Dst.ok() || len(x.Members) > 2048 {
		return a + refused
	}
	subtype := uint16(nxBundle)
	if load {
		subtype = nxBundleLoad
	}
	b := nxHeader(make([]byte, 0, 64), subtype, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(x.Algorithm))
	b = binary.BigEndian.AppendUint16(b, uint16(x.Fields))
	b = binary.BigEndian.AppendUint16(b, x.Basis)
	b = binary.BigEndian.AppendUint32(b, fields[FieldInPort16].sub)
	b = binary.BigEndian.AppendUint16(b, uint16(len(x.Members)))
	if load {
		b = binary.BigEndian.AppendUint16(b, x.Dst.ofsNBits())
		b = binary.BigEndian.AppendUint32(b, fields[x.Dst.Field].sub)
	} else {
		b = append(b, 0, 0, 0, 0, 0, 0)
	}
	b = append(b, 0, 0, 0, 0)
	for _, m := range x.Members {
		b = binary.BigEndian.AppendUint16(b, m)
	}
	return a + Actions(setLen(b, 0))
}

// OutputTruncated sends the first n bytes of the packet to a port.
func (a Actions) OutputTruncated(port uint16, n uint32) Actions {
	var buf [16]byte
	b := nxHeader(buf[:0], nxOutputTrunc, 16)
	b = binary.BigEndian.AppendUint16(b, port)
	return a + Actions(binary.BigEndian.AppendUint32(b, n))
}

// Clone runs actions on a copy of the packet.
func (a Actions) Clone(inner Actions) Actions {
	b := append(nxHeader(nil, nxClone, uint16(16+len(inner))), make([]byte, 6)...)
	return a + Actions(append(b, inner...))
}
