package ofnet

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"net/netip"
	"slices"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
)

// Service is a set of addresses, for the containers of one VRF, whose connections are
// shared by providers.
type Service struct {
	ID  string
	VRF uint16 // of the clients; below 1<<15
	// Affinity is how long a client gets the same provider again after its last new
	// connection, in seconds up to 65535 (18 hours); 0 for no affinity.
	Affinity  time.Duration
	Frontends []Frontend
}

// Frontend is one port of a service at one of its addresses.
type Frontend struct {
	// Number is unique in the bridge, 1 to 1<<30. It must stay the same across restarts,
	// or all flows of the frontend are replaced.
	Number    uint32
	Proto     uint8 // TCP, UDP or SCTP
	Addr      netip.AddrPort
	Providers []Provider // sorted by SortProviders
	// Drop says that clients get no answer if there is no provider.
	Drop bool
}

// Provider is a target for connections to a frontend.
type Provider struct {
	Addr netip.AddrPort
	// Draining keeps existing connections, but accepts no new ones.
	Draining bool
}

// SortProviders sorts providers into the order that flows use.
func SortProviders(all []Provider) {
	slices.SortFunc(all, func(a, b Provider) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(boolInt(a.Draining), boolInt(b.Draining)))
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// FrontendKey is the value from which a frontend's number should be derived.
func FrontendKey(vrf uint16, proto uint8, a netip.AddrPort) uint32 {
	b := binary.BigEndian.AppendUint16(nil, vrf)
	b = append(b, proto)
	b, _ = a.AppendBinary(b) // cannot fail
	return hash32(b)
}

func hash32(b []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(b)
	return h.Sum32()
}

// lowestProvider is above the values that other features put into the register.
const lowestProvider = 16

// numberProviders numbers the providers of a frontend. A number stays while others come and
// go, because a switch may have learned it.
func numberProviders(all []Provider) []uint32 {
	numbers, taken := make([]uint32, len(all)), make(map[uint32]bool, len(all))
	for i, p := range all {
		b, _ := p.Addr.MarshalBinary()
		n := hash32(b)
		for n < lowestProvider || taken[n] {
			n++
		}
		numbers[i], taken[n] = n, true
	}
	return numbers
}

// numbered is a provider with its number.
type numbered struct {
	Provider
	number uint32
}

// open are the providers that accept new connections.
func (f Frontend) open() []numbered {
	var open []numbered
	for i, n := range numberProviders(f.Providers) {
		if v := f.Providers[i]; !v.Draining {
			open = append(open, numbered{v, n})
		}
	}
	return open
}

// ServiceMAC is the MAC address for an IPv4 address of a service, as in earlier versions.
func ServiceMAC(a netip.Addr) MAC {
	b := a.As4()
	return MAC{0x02, 0x02, b[0], b[1], b[2], b[3]}
}

// ServiceZone is the conntrack zone of the services that a VRF's containers use.
func ServiceZone(vrf uint16) uint16 { return serviceZone | vrf }

const serviceZone = 1 << 15

// GoneConnections lists the connections to providers that a service no longer has.
func GoneConnections(before, now Service) []*of.FlushCT {
	kept := map[provision]bool{}
	for p := range now.provisions() {
		kept[p] = true
	}
	var gone []*of.FlushCT
	for p := range before.provisions() {
		if kept[p] {
			continue
		}
		gone = append(gone, &of.FlushCT{
			Proto: p.proto, Zone: ServiceZone(p.vrf), Orig: of.CTTuple{Dst: p.vip.Addr(), DstPort: p.vip.Port()},
			Reply: of.CTTuple{Src: p.provider.Addr(), SrcPort: p.provider.Port()},
		})
	}
	return gone
}

// provision is one provider of one frontend.
type provision struct {
	vrf           uint16
	proto         uint8
	vip, provider netip.AddrPort
}

func (s Service) provisions() iter.Seq[provision] {
	return func(yield func(provision) bool) {
		for _, f := range s.Frontends {
			for _, p := range f.Providers {
				if !yield(provision{s.VRF, f.Proto, f.Addr, p.Addr}) {
					return
				}
			}
		}
	}
}
