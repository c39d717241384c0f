// Package drivers defines what an agent asks of the thing that moves packets on its
// host. drivers/ovsd does it with Open vSwitch, drivers/fakedriver in memory.
package drivers

import (
	"context"
	"net"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
)

// Hits are packets that a rule has decided on: those that open connections, those of
// connections judged again after a change of the rules, and all that it denies.
type Hits struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Port is an interface pair: OVSName is the switch's end. Name is the container's end
// as long as it waits in the host's network namespace for the runtime to move it.
type Port struct {
	Name, OVSName string
	MTU           int
}

// Attachment is a container interface that a port was handed out for. It is kept with
// the port, so that an agent finds again after a restart what it had attached.
type Attachment struct {
	EndpointID  string
	Tenant      string // of the network; empty in ports of earlier versions
	Network     string // its name; empty like Tenant
	ContainerID string
	IfName      string
	Netns       string // path of the network namespace; empty: the runtime moves the interface itself
	Pod         string // <namespace>/<name> of the Kubernetes pod, if it is for one
	PodUID      string
	Config      string // name of the CNI network configuration, if it was made for one
	Port        Port
}

// Summary is what the declared state compiles to, over all bridges.
type Summary struct {
	Flows int
	// Digest is a checksum of the flows; equal flows have equal digests.
	Digest uint64
}

// Driver takes the desired state of one host. Its methods return at once and may be
// called in any order, with the same value again, and before the driver runs. What they
// declare is realised as soon as it can be, retried until it holds, and stays while the
// switch or its database restarts.
type Driver interface {
	// Apply declares an object, or replaces the one of its kind and id.
	Apply(Object)
	// Delete takes a declaration back; one that does not exist is no error. The port of a
	// local endpoint stays until Detach.
	Delete(k Kind, id string)
	// Synced says that a source has declared everything it knows: what its predecessor has
	// left and it has not declared is stale, and swept.
	Synced(Source)
}

// Ports hands out the ports of this host's endpoints.
type Ports interface {
	// Attach gives an endpoint of this host a port, with the container's end as IfName
	// in the namespace Netns, not yet configured. Repeated, it returns the same port.
	Attach(ctx context.Context, a Attachment, encap ofnet.Encap, tag uint16) (Port, error)
	// Detach takes the port of an endpoint away; an unknown endpoint is no error.
	Detach(ctx context.Context, endpointID string) error
	// Attachments lists the ports handed out.
	Attachments() []Attachment
	// Realised waits until the switch forwards for an attached endpoint of this host,
	// subject to its policy.
	Realised(ctx context.Context, endpointID string) error
}

// Inspector tells how the switch is, and what it counts.
type Inspector interface {
	// Ready returns nil when everything declared is in the switch, or what is missing.
	Ready() error
	// Flushed waits until Ready returns nil, and returns what it says at ctx's end.
	Flushed(ctx context.Context) error
	// Summary sums up what the declared state compiles to.
	Summary() Summary
	// ServiceCounts tells what the containers of this host have exchanged with the
	// providers of services, as far as the switch still counts it. It fails with
	// Unavailable while a switch cannot be asked.
	ServiceCounts(ctx context.Context) ([]ServiceCount, error)
	// RuleHits tells how often each rule has decided on this host, by its id. It fails
	// with Unavailable while a switch cannot be asked.
	RuleHits(ctx context.Context) (map[string]Hits, error)
	// InspectBGP describes the BGP speaker; without one the error says why.
	InspectBGP(ctx context.Context) (bgp.State, error)
	// Inspect returns the debug state of each bridge, to be encoded as JSON, by "vlan" and "vxlan".
	Inspect() map[string]any
}

// NameServer is what a driver gives the name queries of this host's containers to.
type NameServer interface {
	// Query is given a datagram. It must not wait, and see to it that the query is
	// answered or passed, unless it is to be lost.
	Query(DNSQuery)
	// Stream is given a connection of a container of a tenant to one of the agent's
	// addresses. It serves and closes it, and returns at the end of ctx at the latest.
	Stream(ctx context.Context, tenant string, c net.Conn)
}

// DNSQuery is a datagram that a container sends to a name server.
type DNSQuery struct {
	Tenant  string
	ToAgent bool   // to one of the agent's own addresses; Pass would lose it
	Message []byte // RFC 1035, not looked at
	// At most one of these is called, from any goroutine.
	Answer func(message []byte)
	Pass   func() // on to the server that it is for
}
