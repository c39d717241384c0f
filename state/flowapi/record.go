// Package flowapi holds what netctl, the page, netmaster and agents tell each other about
// connections: what was seen (Record), how often rules decided (Hits), what the model says
// of a connection (Explanation), and what a change would do to connections (Preview).
//
// Streams are JSON lines, one Event each. Netmaster asks the agents of all hosts and joins
// what the two ends of a connection saw into one record.
package flowapi

import (
	"net/netip"
	"time"
)

// Verdict is what became of a connection.
type Verdict string

// The verdicts.
const (
	Allowed  Verdict = "allowed"
	Denied   Verdict = "denied"   // silently
	Rejected Verdict = "rejected" // and the sender was told
)

// Record is a connection, or denied packets of one sender to one port that were joined.
type Record struct {
	// ID names the record on its host, or, of both ends, that of the sender's host. It
	// grows with time, so that a reader can go on after one.
	ID string `json:"id"`
	// Start is when the first packet was seen; of an allowed connection, when it was found
	// in the connection table, at most an interval of looking later.
	Start time.Time `json:"start"`
	// End is zero while the connection is open. Of denials: when the last was seen.
	End time.Time `json:"end,omitzero"`
	// Hosts saw it: the sender's, the receiver's, or both, in this order.
	Hosts   []string `json:"hosts"`
	Tenant  string   `json:"tenant"`
	Verdict Verdict  `json:"verdict"`
	Proto   string   `json:"proto"` // tcp | udp | icmp | icmpv6 | sctp | arp | the number of another IP protocol
	Src     End      `json:"src"`
	Dst     End      `json:"dst"`
	Service *Service `json:"service,omitempty"` // through which Dst was asked for
	// Decisions tell, for each end that decided, which rule did. The one that denied is last.
	Decisions []Decision `json:"decisions"`
	// WouldBe is what rules in audit mode would have decided; empty: the same.
	WouldBe *Decision `json:"wouldBe,omitempty"`
	// Audited: a rule of a policy with audit decided; hosts write it to their audit files.
	Audited bool `json:"audited,omitempty"`
	// Packets and Bytes in both directions, where the switch counts them; otherwise 0.
	Packets uint64 `json:"packets,omitempty"`
	Bytes   uint64 `json:"bytes,omitempty"`
	// Count is how many packets were denied and joined into this record; 1 of a connection.
	Count uint32 `json:"count"`
}

// End is the sender or the receiver of a connection.
type End struct {
	Address  netip.Addr `json:"address"`
	Port     uint16     `json:"port,omitempty"`     // of ICMP, in Dst: type << 8 | code
	Endpoint string     `json:"endpoint,omitempty"` // id; empty: not an endpoint of the cluster
	Name     string     `json:"name,omitempty"`     // container's name, or namespace/pod
	Group    string     `json:"group,omitempty"`
	Network  string     `json:"network,omitempty"`
	Tenant   string     `json:"tenant,omitempty"` // if it is not the record's
	Host     string     `json:"host,omitempty"`
}

// Service is the service that a client asked for.
type Service struct {
	Name    string     `json:"name"` // of its tenant, or namespace/name of Kubernetes
	Address netip.Addr `json:"address"`
	Port    uint16     `json:"port,omitempty"`
}

// Where a decision was made: at which end of the connection.
const (
	AtSource      = "source"
	AtDestination = "destination"
	AtBoth        = "both" // both ends are on the host
)

// Kinds of what decides.
const (
	ByRule          = "rule"           // a rule of a policy
	ByNetworkPolicy = "network-policy" // of Kubernetes
	ByDefault       = "default"        // no rule matched: allowed; isolated and no rule matched: denied
	ByAntiSpoofing  = "anti-spoofing"  // not the sender's own address
	ByFrame         = "frame"          // of a kind that containers may not send
	ByControlPlane  = "control-plane"  // a port of the store, netmaster or an agent
	ByService       = "service"        // a service without provider for the port
	ByTunnel        = "tunnel"         // from an address that is not a host's
	ByLimit         = "limit"          // of new connections
)

// Decision names what decided about a connection at one end.
type Decision struct {
	Host string `json:"host"`
	At   string `json:"at"`
	By   string `json:"by"`
	// Policy is the policy's name, or namespace/name of a NetworkPolicy.
	Policy string `json:"policy,omitempty"`
	// Rule is the rule's ID within the policy; of a NetworkPolicy: ingress[0], egress[2], …
	Rule    string  `json:"rule,omitempty"`
	Verdict Verdict `json:"verdict"`
}

// Event is one line of a stream. Exactly one field is set.
type Event struct {
	// Record replaces one of the same ID that was sent before.
	Record *Record `json:"record,omitempty"`
	Gap    *Gap    `json:"gap,omitempty"`
	// Missing is a host that could not be asked, or that is no longer heard.
	Missing *Missing `json:"missing,omitempty"`
	// Heartbeat is sent when there has been nothing else for 15 s, and once when everything
	// that was recorded before the request has been sent.
	Heartbeat *Heartbeat `json:"heartbeat,omitempty"`
}

// Gap says that a host left out records: more packets were denied than it may look at, or
// the log was full. A log never leaves anything out without saying so.
type Gap struct {
	Host  string    `json:"host"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Count uint64    `json:"count"` // packets or records
	Why   string    `json:"why"`   // one line
}

// Missing is a host without an answer.
type Missing struct {
	Host  string `json:"host"`
	Error string `json:"error"`
}

// Heartbeat says that the stream is alive.
type Heartbeat struct {
	Time time.Time `json:"time"`
	// Live: all that was recorded before the request has been sent.
	Live bool `json:"live,omitempty"`
}
