package libopenflow

import (
	"encoding/binary"
	"net/netip"
)

// Controller is the controller action with options of the Nicira extension. The zero
// value sends the whole packet, with the reason "action", to every controller.
type Controller struct {
	MaxLen   uint16 // bytes of the packet to send; 0 means all
	ID       uint16 // controller id, see SetControllerID
	Miss     bool   // give the reason "no match" instead of "action"
	Userdata []byte // comes back in the packet-in; needs PacketInFormat2
	Meter    uint32 // meter that limits these packet-ins; 0 means none
	// Pause stops the packet here; it goes on when a Resume for its packet-in comes,
	// and never if none does. Needs PacketInFormat2.
	Pause bool
}

// Controller sends the packet to the controller.
func (a Actions) Controller(c Controller) Actions {
	x := controllerAction{maxLen: c.MaxLen, id: c.ID, reason: ReasonAction, userdata: string(c.Userdata), meter: c.Meter, pause: c.Pause}
	if c.MaxLen == 0 {
		x.maxLen = MaxLenFull
	}
	if c.Miss {
		x.reason = ReasonMiss
	}
	return a.controller(x)
}

// controllerAction is every option of a controller action.
type controllerAction struct {
	maxLen, id uint16
	reason     PacketInReason
	userdata   string
	pause      bool
	meter      uint32
}

// Controller2 properties.
const (
	c2MaxLen   = 0
	c2ID       = 1
	c2Reason   = 2
	c2Userdata = 3
	c2Pause    = 4
	c2Meter    = 5
)

// controller picks the oldest of the three encodings that can hold the options.
func (a Actions) controller(c controllerAction) Actions {
	if c.userdata == "" && c.meter == 0 && !c.pause {
		if c.id == 0 && c.reason == ReasonAction {
			return a.OutputController(c.maxLen)
		}
		var buf [16]byte
		b := nxHeader(buf[:0], nxController, 16)
		b = binary.BigEndian.AppendUint16(b, c.maxLen)
		b = binary.BigEndian.AppendUint16(b, c.id)
		return a + Actions(append(b, byte(c.reason), 0))
	}
	b := nxHeader(nil, nxController2, 0)
	b = append(b, make([]byte, 6)...)
	if c.maxLen != MaxLenFull {
		b = prop16(b, c2MaxLen, c.maxLen)
	}
	if c.id != 0 {
		b = prop16(b, c2ID, c.id)
	}
	if c.reason != ReasonAction {
		b = append(b, 0, c2Reason, 0, 5, byte(c.reason), 0, 0, 0)
	}
	if c.userdata != "" {
		b = actionHeader(b, c2Userdata, uint16(4+len(c.userdata)))
		b = pad8(append(b, c.userdata...), 0)
	}
	if c.pause {
		b = append(b, 0, c2Pause, 0, 4, 0, 0, 0, 0)
	}
	if c.meter != 0 {
		b = binary.BigEndian.AppendUint32(actionHeader(b, c2Meter, 8), c.meter)
	}
	return a + Actions(setLen(b, 0))
}

// prop16 appends a property with a 16-bit value; the switch counts the padding in its
// length.
func prop16(b []byte, typ, v uint16) []byte {
	b = actionHeader(b, typ, 8)
	b = binary.BigEndian.AppendUint16(b, v)
	return append(b, 0, 0)
}

// setLen pads the action that starts at offset at and writes its length.
func setLen(b []byte, at int) []byte {
	b = pad8(b, at)
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// CT is the ct action: it sends the packet through connection tracking.
type CT struct {
	Commit   bool     // remember the connection
	Force    bool     // with Commit: forget a connection in the other direction first
	Zone     uint16   // the zone, unless ZoneFrom is set
	ZoneFrom Subfield // 16 bits of the packet's metadata that name the zone
	Recirc   bool     // go on in Table with ct_state known; else the packet ends here unless the list goes on
	Table    uint8    // with Recirc, 0…254
	ALG      uint16   // helper by its port: 21 FTP, 69 TFTP; 0 none
	NAT      NAT
	Exec     Actions // with Commit: set_field and load of ct_mark and ct_label
}

const (
	ctCommit  = 1
	ctForce   = 2
	ctNoTable = 0xff
)

// CT sends the packet through connection tracking.
func (a Actions) CT(c CT) Actions {
	b := nxHeader(make([]byte, 0, 96), nxCT, 0)
	var flags uint16
	if c.Commit {
		flags |= ctCommit
	}
	if c.Force {
		flags |= ctForce
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	if c.ZoneFrom != (Subfield{}) {
		if !c.ZoneFrom.ok() {
			return a + refused
		}
		b = binary.BigEndian.AppendUint32(b, fields[c.ZoneFrom.Field].sub)
		b = binary.BigEndian.AppendUint16(b, c.ZoneFrom.ofsNBits())
	} else {
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint16(b, c.Zone)
	}
	if c.NAT.Max.IsValid() && c.NAT.Max.Unmap().BitLen() != c.NAT.Min.Unmap().BitLen() {
		return a + refused
	}
	table := uint8(ctNoTable)
	if c.Recirc {
		table = c.Table
	}
	b = append(b, table, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, c.ALG)
	b = c.NAT.append(b)
	b = append(b, c.Exec...)
	return a + Actions(setLen(b, 0))
}

// NATKind says what a NAT does.
type NATKind uint8

// Kinds of NAT.
const (
	NATNone     NATKind = iota // no nat in the ct action
	NATExisting                // translate packets of connections that are translated already
	NATSource                  // also: translate the source of new connections
	NATDest                    // also: translate the destination of new connections
)

// NAT is the nat argument of a ct action.
type NAT struct {
	Kind    NATKind
	Min     netip.Addr // first or only address; invalid: keep the address
	Max     netip.Addr // last address of a range; invalid: Min alone
	MinPort uint16     // first or only port; 0: keep the port if possible
	MaxPort uint16     // last port of a range; 0: MinPort alone
	Flags   NATFlags
}

// NATFlags tune how addresses and ports of a range are chosen.
type NATFlags uint16

// NAT flags.
const (
	NATPersistent NATFlags = 1 << 2
	NATHash       NATFlags = 1 << 3
	NATRandom     NATFlags = 1 << 4

	natSrc NATFlags = 1 << 0
	natDst NATFlags = 1 << 1
)

const (
	natV4Min = 1 << iota
	natV4Max
	natV6Min
	natV6Max
	natPortMin
	natPortMax
)

// append writes the nested nat action.
func (n NAT) append(b []byte) []byte {
	if n.Kind == NATNone {
		return b
	}
	if n.Kind == NATExisting {
		n = NAT{Kind: NATExisting} // the rest is for new connections
	}
	at := len(b)
	flags := n.Flags &^ (natSrc | natDst)
	switch n.Kind {
	case NATSource:
		flags |= natSrc
	case NATDest:
		flags |= natDst
	}
	b = nxHeader(b, nxNAT, 0)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(flags))
	var present uint16
	min, max := n.Min.Unmap(), n.Max.Unmap()
	if max == min {
		max = netip.Addr{}
	}
	addr := func(x netip.Addr, v4, v6 uint16) {
		switch {
		case x.Is4():
			present |= v4
		case x.Is6():
			present |= v6
		}
	}
	addr(min, natV4Min, natV6Min)
	addr(max, natV4Max, natV6Max)
	if n.MaxPort == n.MinPort || n.MinPort == 0 {
		n.MaxPort = 0
	}
	if n.MinPort != 0 {
		present |= natPortMin
	}
	if n.MaxPort != 0 {
		present |= natPortMax
	}
	b = binary.BigEndian.AppendUint16(b, present)
	b = append(b, min.AsSlice()...)
	b = append(b, max.AsSlice()...)
	if n.MinPort != 0 {
		b = binary.BigEndian.AppendUint16(b, n.MinPort)
	}
	if n.MaxPort != 0 {
		b = binary.BigEndian.AppendUint16(b, n.MaxPort)
	}
	return setLen(b, at)
}

// HashFields says which header fields choose the link of a multipath action.
type HashFields uint16

// Sets of header fields.
const (
	HashEthSrc         HashFields = 0
	HashSymmetricL4    HashFields = 1
	HashSymmetricL3L4  HashFields = 2
	HashSymmetricL3UDP HashFields = 3 // symmetric_l3l4+udp
	HashIPv4Src        HashFields = 4
	HashIPv4Dst        HashFields = 5
	HashSymmetricL3    HashFields = 6
)

// MultipathAlgorithm maps a hash to a link.
type MultipathAlgorithm uint16

// Algorithms of multipath.
const (
	MultipathModuloN       MultipathAlgorithm = 0
	MultipathHashThreshold MultipathAlgorithm = 1
	MultipathHRW           MultipathAlgorithm = 2
	MultipathIterHash      MultipathAlgorithm = 3
)

// Multipath chooses one of Links links by a hash and stores its number.
type Multipath struct {
	Fields    HashFields
	Basis     uint16
	Algorithm MultipathAlgorithm
	Links     uint32 // 1…65536
	Arg       uint32 // of MultipathIterHash only
	Dst       Subfield
}

// Multipath stores a number from 0 to Links-1, chosen by a hash, in Dst.
func (a Actions) Multipath(m Multipath) Actions {
	if !m.Dst.ok() || m.Links == 0 || m.Links > 1<<16 {
		return a + refused
	}
	var buf [32]byte
	b := nxHeader(buf[:0], nxMultipath, 32)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Fields))
	b = binary.BigEndian.AppendUint16(b, m.Basis)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Algorithm))
	b = binary.BigEndian.AppendUint16(b, uint16(m.Links-1))
	b = binary.BigEndian.AppendUint32(b, m.Arg)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, m.Dst.ofsNBits())
	return a + Actions(binary.BigEndian.AppendUint32(b, fields[m.Dst.Field].sub))
}
