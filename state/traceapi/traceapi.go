// Package traceapi holds what netctl, netmaster and agents tell each other about the way
// of a packet. netctl asks netmaster (Query, Trace); netmaster asks the agents of the
// hosts that the packet comes to, one after the other (HopRequest, Hop).
package traceapi

import "net/netip"

// Paths.
const (
	PathMaster = "/api/v1/trace/" // GET Trace, from netmaster; a Query in the query string
	PathAgent  = "/trace"         // POST HopRequest, to an agent: Hop
)

// Queries of PathMaster.
const (
	QueryFrom   = "from"   // endpoint: its id, or (part of) its container's id or name, or its address
	QueryTo     = "to"     // the same, or any address
	QueryTenant = "tenant" // where endpoints are looked for by address; default: every tenant
	QueryProto  = "proto"  // icmp | tcp | udp | sctp; default: tcp with a port, else icmp
	QueryPort   = "port"   // destination port, 1–65535
	QueryFamily = "family" // 4 | 6; default: that of an address given, else what both endpoints have
)

// Query is what a user wants to know: what becomes of the first packet of a connection,
// and of the answer to it.
type Query struct {
	From, To, Tenant, Proto string
	Port                    uint16
	Family                  int // 4, 6, or 0
}

// Packet is a packet's header. Addresses of Ethernet are left out (empty) where the
// agent is to fill them in as a container would.
type Packet struct {
	EthSrc  string     `json:"ethSrc,omitempty"`
	EthDst  string     `json:"ethDst,omitempty"`
	Src     netip.Addr `json:"src"`
	Dst     netip.Addr `json:"dst"`
	Proto   string     `json:"proto"` // icmp | tcp | udp | sctp
	SrcPort uint16     `json:"srcPort,omitempty"`
	DstPort uint16     `json:"dstPort,omitempty"`
	// Answer: it answers the first packet of a connection. For icmp: an echo reply.
	Answer bool `json:"answer,omitempty"`
	TTL    int  `json:"ttl,omitempty"`
}

// HopRequest asks an agent for the way of a packet through its host. Exactly one of
// Endpoint, VNI and VLAN says where the packet comes from.
type HopRequest struct {
	Endpoint string     `json:"endpoint,omitempty"` // id of an endpoint of the host, which sends it
	VNI      uint32     `json:"vni,omitempty"`      // through the tunnel …
	VTEP     netip.Addr `json:"vtep,omitzero"`      // … from this address
	VLAN     uint16     `json:"vlan,omitempty"`     // by the uplink, with this tag
	Packet   Packet     `json:"packet"`
}

// Hop is the way of a packet through a host.
type Hop struct {
	Host   string `json:"host"`
	Bridge string `json:"bridge"`
	Mode   string `json:"mode"` // vlan | vxlan | vrouter | vlrouter
	From   string `json:"from"` // where it comes from, in words
	Packet Packet `json:"packet"`
	Steps  []Step `json:"steps"`
	Ends   []End  `json:"ends"` // at least one
}

// Step is a flow that decided about the packet.
type Step struct {
	Table   string   `json:"table"`
	Feature string   `json:"feature"`          // what the flow is for
	Object  string   `json:"object,omitempty"` // what wants it: an endpoint, a network, a rule …
	Words   string   `json:"words,omitempty"`  // what it means for the packet; empty: nothing of note
	Match   string   `json:"match,omitempty"`  // ovs-ofctl's syntax
	Actions []string `json:"actions,omitempty"`
}

// Kinds of End.
const (
	Delivered = "delivered" // to an endpoint of the host
	Tunnelled = "tunnelled" // sent to the host with the tunnel address VTEP
	Uplinked  = "uplinked"  // sent out of the uplink, with the tag VLAN
	Answered  = "answered"  // by the switch itself, or refused by it
	ToAgent   = "agent"     // given to the agent of the host
	ToHost    = "host"      // given to the host's own network stack
	Dropped   = "dropped"
)

// End is where the packet has got to on a host.
type End struct {
	Kind     string     `json:"kind"`
	Endpoint string     `json:"endpoint,omitempty"`
	VTEP     netip.Addr `json:"vtep,omitzero"`
	VNI      uint32     `json:"vni,omitempty"`
	VLAN     uint16     `json:"vlan,omitempty"`
	Words    string     `json:"words"`
	Packet   Packet     `json:"packet"` // as it leaves
}

// Place is an endpoint that a Trace is about.
type Place struct {
	Endpoint string     `json:"endpoint,omitempty"` // id; empty: an address that is no endpoint's
	Name     string     `json:"name"`               // for people
	Host     string     `json:"host,omitempty"`
	Address  netip.Addr `json:"address"`
}

// Trace is what becomes of a packet, and of the answer to it.
type Trace struct {
	From    Place  `json:"from"`
	To      Place  `json:"to"`
	Packet  Packet `json:"packet"`
	Request []Hop  `json:"request"`
	Reply   []Hop  `json:"reply"` // empty when the request does not arrive
	// Arrives: the request comes to its destination, and the answer back.
	Arrives bool   `json:"arrives"`
	Verdict string `json:"verdict"` // one sentence
}
