package hostnet

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/utils/netx"
)

// RouteProtocol marks our routes (rtnetlink(7), rtm_protocol; 192 to 255 and the
// numbers of /etc/iproute2/rt_protos.d are free for such use).
const RouteProtocol = 202

// Table is the name of our nftables table, of the family inet.
const Table = "contiv"

// Plan is how the host's side is to be. The zero Plan is: nothing.
type Plan struct {
	Links  []Link
	Routes []Route
	NAT    []NAT
	// Guarded names links into which nobody but the host itself may open connections,
	// except where it has translated their destination (a published port).
	Guarded []string
	// Own are addresses that nobody but the host itself may send under into the links
	// Guarded.
	Own []netip.Addr
	// Deaf names links by which the host itself takes nothing; a * at the end stands for
	// anything. They are the switch's, and a userspace switch gets copies only.
	Deaf []string
	// Closed is what does not take connections from the links in Guarded.
	Closed Closed
	// World4 and World6: the host forwards between the links and everything else, which
	// is beyond its default routes and the links with the addresses Outside.
	World4, World6 bool
	Outside        []netip.Addr
}

// Closed are ports of this host, and of others.
type Closed struct {
	Ports []Ports      // of all addresses of this host, and of Hosts
	Hosts []netip.Addr // of other hosts, or of this one
	// Tunnels are UDP ports, of everybody.
	Tunnels []uint16
}

// Ports are those from Low to High of TCP (6) or UDP (17).
type Ports struct {
	Proto     uint8
	Low, High uint16
}

// Link is a link that somebody else makes and removes.
type Link struct {
	Name  string
	MAC   [6]byte
	MTU   int            // bytes
	Addrs []netip.Prefix // exactly these, but for link-local ones
	// NoARP: who is at the other end takes every frame, and is not to be asked.
	NoARP bool
}

// Route leads to Dst over the link, under the source address Src. It needs no next hop.
type Route struct {
	Dst  netip.Prefix
	Link string
	Src  netip.Addr // zero: the kernel chooses
}

// NAT translates source addresses: what Sender sends and leaves through Out under another
// address than To gets To. Without To, what comes from From and does not leave through a link of
// Inside gets the address of the interface it leaves through.
type NAT struct {
	Out    string // name of a link
	To     netip.Addr
	Sender Sender

	From   netip.Prefix
	Inside []string // names of links
}

// checked is the plan without what names no interface could have: names come from the
// store, and are written into rules that the kernel takes from root. The error tells
// what is missing.
func (p Plan) checked() (Plan, error) {
	bad := map[string]error{}
	fits := func(name string) bool {
		err := netx.CheckLinkName(name)
		if err != nil {
			bad[name] = err
		}
		return err == nil
	}
	out := p
	out.Links, out.Routes, out.NAT, out.Guarded = nil, nil, nil, nil
	for _, l := range p.Links {
		if fits(l.Name) {
			out.Links = append(out.Links, l)
		}
	}
	for _, r := range p.Routes {
		if fits(r.Link) {
			out.Routes = append(out.Routes, r)
		}
	}
	for _, n := range p.NAT {
		if n.Out != "" && !fits(n.Out) {
			continue
		}
		n.Inside = slices.DeleteFunc(slices.Clone(n.Inside), func(name string) bool { return !fits(name) })
		out.NAT = append(out.NAT, n)
	}
	for _, name := range p.Guarded {
		if fits(name) {
			out.Guarded = append(out.Guarded, name)
		}
	}
	return out, errors.Join(slices.Collect(maps.Values(bad))...)
}

// Sender says whose packets are meant.
type Sender uint8

// The senders.
const (
	Everybody  Sender = iota
	ThisHost          // its own processes
	Others            // for whom it forwards
	Containers        // of these those that come by a link of Inside
)

func (p Plan) link(name string) (Link, bool) {
	i := slices.IndexFunc(p.Links, func(l Link) bool { return l.Name == name })
	if i < 0 {
		return Link{}, false
	}
	return p.Links[i], true
}
