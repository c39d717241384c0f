// Package drivers defines what an agent asks of the thing that moves packets on its
// host. drivers/ovsd does it with Open vSwitch, drivers/fakedriver in memory.
package drivers

import (
	"context"
	"net"
	"net/netip"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
)

// Global holds the settings that choose the pipelines.
type Global struct {
	FwdMode   string // bridge | routing
	ARPMode   string // proxy | flood
	PvtSubnet netip.Prefix
}

// Network is a network with everything resolved that the driver needs.
type Network struct {
	ID       string // <network>.<tenant>
	Tenant   string
	Name     string
	Encap    ofnet.Encap
	Tag      uint16
	VNI      uint32
	Subnet4  netip.Prefix
	Subnet6  netip.Prefix
	Gateway4 netip.Addr
	Gateway6 netip.Addr
	Infra    bool
}

// Endpoint is an endpoint with its network, group and host resolved.
type Endpoint struct {
	ID      string // <network>.<tenant>-<endpoint>
	Network Network
	Group   uint32
	MAC     ofnet.MAC
	IPv4    netip.Addr
	IPv6    netip.Addr
	QoS     ofnet.QoS  // of an endpoint of this host
	Local   bool       // of this host: its port is found by its id
	VTEP    netip.Addr // of a remote endpoint's host; zero while the host is unknown
	// Tag is the VLAN of an endpoint of this host whose group has one of its own, as in
	// an ACI fabric; 0 for that of the network.
	Tag uint16
}

// VLAN is the one that the endpoint's port is in.
func (e Endpoint) VLAN() uint16 {
	if e.Tag != 0 {
		return e.Tag
	}
	return e.Network.Tag
}

// Rule is a policy rule for the containers of a tenant. The zero value of a field of
// its match means any.
type Rule struct {
	Tenant string
	ofnet.Rule
}

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

// Driver realises the desired state of one host. The Set and Remove methods declare;
// they return at once and may be called in any order, with the same value again, and
// before Run. What they declare is realised as soon as it can be, retried until it
// holds, and stays while switch or database restart.
type Driver interface {
	// Run works until ctx ends. It leaves everything running when it returns.
	Run(ctx context.Context) error

	SetGlobal(Global)
	SetNetwork(Network)
	RemoveNetwork(id string)
	SetEndpoint(Endpoint)
	RemoveEndpoint(id string)
	// SetRule declares a rule. A tenant without rules allows everything.
	SetRule(Rule)
	RemoveRule(id string)
	// SetService declares a service for the containers of a tenant, or of all.
	SetService(Service)
	RemoveService(id string)
	// SetPolicyRuleSet declares what connections are allowed, for guards to refer to.
	SetPolicyRuleSet(PolicyRuleSet)
	RemovePolicyRuleSet(id string)
	// SetEndpointPolicy holds an endpoint of this host to sets of what is allowed, besides the
	// rules of its tenant: what either denies is denied.
	SetEndpointPolicy(EndpointPolicy)
	RemoveEndpointPolicy(endpointID string)
	// KeepEndpointPolicies and ReleaseEndpointPolicies are for guards what those are for services.
	KeepEndpointPolicies()
	ReleaseEndpointPolicies()
	// KeepServices, called before Complete, has services stay that a predecessor has
	// declared and nobody declares yet, until ReleaseServices: whoever declares them may
	// have to wait for it.
	KeepServices()
	ReleaseServices()
	// ReachCluster has the host itself reach containers of other hosts too, where it knows
	// containers by their addresses; services are where addresses of services are that
	// something on the host translates.
	ReachCluster(services []netip.Prefix)
	// SetSpeaker declares the BGP speaker of this host, which announces its containers
	// on VLAN networks, and whose routes lead them to the outside; nil for none.
	SetSpeaker(*bgp.Config)
	// Complete says that everything that exists has been declared: what the switch
	// has beyond that is stale and may be swept.
	Complete()

	// Attach gives an endpoint of this host a port, with the container's end as IfName
	// in the namespace Netns, not yet configured. Repeated, it returns the same port.
	Attach(ctx context.Context, a Attachment, encap ofnet.Encap, tag uint16) (Port, error)
	// Detach takes the port of an endpoint away; an unknown endpoint is no error.
	Detach(ctx context.Context, endpointID string) error
	// Attachments lists the ports handed out.
	Attachments() []Attachment
	// Realised waits until the switch forwards for an attached endpoint of this host,
	// and holds it to what its guard says.
	Realised(ctx context.Context, endpointID string) error

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
	// InspectBGP describes the BGP speaker; without one the error says why.
	InspectBGP(ctx context.Context) (bgp.State, error)
	// RuleHits tells how often each rule has decided on this host, by its id. It fails
	// with Unavailable while a switch cannot be asked.
	RuleHits(ctx context.Context) (map[string]Hits, error)
	// Inspect returns a JSON-able picture of each bridge, by "vlan" and "vxlan".
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
