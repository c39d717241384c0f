package drivers

import (
	"context"
	"net/netip"

	"github.com/contiv/netplugin/ofnet"
)

// Connection is one that the switch of this host tracks.
type Connection struct {
	VRF      uint16 // number of the tenant on this host
	Tenant   string // its name
	Proto    uint8  // IP protocol
	Src, Dst netip.AddrPort
	ICMP     uint16 // type << 8 | code; Src.Port is the identifier then
	// Service is what the sender asked for, if that was translated to Dst; no address if not.
	Service netip.AddrPort
	// Decided says that rules and policies have decided about it, or the log itself had it
	// tracked, and that the numbers say by what (see ofnet.NumberOf). Otherwise it has only been
	// translated.
	Decided       bool
	Rule, Out, In uint32
	Closed        bool   // TCP: both ends have said so
	Packets       uint64 // in both directions; 0 if the switch does not count
	Bytes         uint64
}

// Denied is a packet that the switch has denied.
type Denied struct {
	ofnet.DeniedPacket
	Tenant   string // empty if the packet was denied before that was known
	Endpoint string // id of the endpoint of this host that sent it; empty: it came from elsewhere
	Service  string // id of the service it was for
	Asked    netip.AddrPort
}

// Connections tells what the switch knows of connections, for a log of them.
type Connections interface {
	// Connections calls yield with every tracked connection of containers, which may be
	// listed in several parts: as it was translated, and as it was decided about. The value
	// is valid during the call only. It fails with Unavailable while the switch cannot be asked.
	Connections(ctx context.Context, yield func(*Connection)) error
	// Withheld counts the denied packets of which the log was not told, by the meter that held
	// them back. A meter that is made again counts from zero.
	Withheld(ctx context.Context) (map[string]uint64, error)
}
