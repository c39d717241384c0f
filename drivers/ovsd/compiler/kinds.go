package compiler

// Kind is a kind of row: an input (declared or observed), a fact derived from inputs,
// flows, or a notification of an observer.
type Kind uint8

// The kinds, in the order in which they are computed: none depends on a later one.
const (
	// Inputs.
	Global Kind = iota
	Bridge      // by encapsulation
	Synced
	Cluster
	Network
	Endpoint
	Port // by endpoint
	Rule
	Service
	RuleSet
	PolicyPeer     // by tenant and address
	EndpointPolicy // by endpoint
	Host           // by label
	ControlPorts
	Uplink
	Tunnel

	// Facts: results that several programs depend on, and that change less often than
	// inputs.
	Pipeline       // by encapsulation
	TenantHere     // by tenant: whether this host needs its flows
	TenantSeen     // by tenant: whether it has networks
	TenantRules    // by tenant: whether it has rules
	MovedTenants   // one: those of which one of these facts has changed since
	Peer           // by tunnel address: whether a host has it
	AddressOwner   // by endpoint: whether it owns its addresses on this host
	Location       // by endpoint: where its network is flooded to because of it
	GroupTag       // by endpoint: the VLAN of its group
	PolicySubject  // by endpoint: the tenant under which it is subject to a policy here
	RuleSetBridges // by rule set: the bridges in which endpoints are subject to it
	SubjectBridges // by tenant: the bridges in which endpoints are subject to a policy

	// Programs.
	FixedFlows
	PeerFlows
	ReachFlows
	NetworkFlows
	FloodFlows
	GroupVLANFlows // by VLAN
	RuleFlows
	RuleSetFlows
	PolicyPeerFlows // by tenant and address
	ServiceFlows
	EndpointFlows
	PolicyFlows // by endpoint
	OwnNodeFlows
	TenantFlows
	HostPortFlows
	UplinkFlows

	// Observers, notified when something they use has changed.
	Announcement // by endpoint
	Neighbor     // by tunnel address
	BGP
	HostPlan
	Ports // the bridges' own ports and VLANs

	numKinds
)

var kindNames = [numKinds]string{
	"global", "bridge", "synced", "cluster", "network", "endpoint", "port", "rule", "service", "rule set", "policy peer", "endpoint policy", "host", "control ports", "uplink", "tunnel",
	"pipeline", "tenant here", "tenant seen", "tenant rules", "moved tenants", "peer", "address owner", "location", "group tag", "policy subject", "rule set bridges", "subject bridges",
	"fixed flows", "peer flows", "reach flows", "network flows", "flood flows", "group VLAN flows", "rule flows", "rule set flows", "policy peer flows", "service flows", "endpoint flows",
	"policy flows", "own-node flows", "tenant flows", "host port flows", "uplink flows",
	"announcement", "neighbor", "bgp", "host plan", "ports",
}

func (k Kind) String() string { return kindNames[k] }

// dependency says that rows of one kind depend on rows of another; keys says which ones.
type dependency struct {
	from, to Kind
	keys     relation
}

// relation calls mark for the keys that depend on a key. It runs before and after a row
// changes, and may read any input.
type relation func(c *Compiler, key string, mark func(string))

// dependencies is what has to be recomputed after a change. The package documentation has a
// diagram of it.
var dependencies = []dependency{
	{Global, Pipeline, allOf(Pipeline)},
	{Global, Announcement, localEndpoints},
	{Global, BGP, one},
	{Global, HostPlan, one},
	{Global, Ports, one},
	{Bridge, Pipeline, same},
	{Bridge, HostPlan, one},
	{Synced, TenantFlows, allOf(TenantFlows)},
	{Synced, BGP, one},
	{Synced, HostPlan, one},
	{Synced, Ports, one},
	{Cluster, Pipeline, allOf(Pipeline)},
	{Cluster, HostPlan, one},
	{Cluster, TenantHere, allOf(TenantHere)},

	{Network, TenantHere, tenantOfNetwork},
	{Network, TenantSeen, tenantOfNetwork},
	{Network, NetworkFlows, same},
	{Network, NetworkFlows, overlappingNetworks},
	{Network, FloodFlows, same},
	{Network, HostPlan, one},
	{Network, Ports, one},

	{Endpoint, TenantHere, tenantOfEndpoint},
	{Endpoint, AddressOwner, sameIfLocal},
	{Endpoint, Location, sameIfHere},
	{Endpoint, GroupTag, sameIfLocal},
	{Endpoint, GroupVLANFlows, groupVLAN},
	{Endpoint, PolicySubject, sameIfLocal},
	{Endpoint, RuleSetBridges, ruleSetsOfEndpoint},
	{Endpoint, SubjectBridges, tenantOfSubject},
	{Endpoint, EndpointFlows, sameIfHere},
	{Endpoint, PolicyFlows, sameIfLocal},
	{Endpoint, OwnNodeFlows, ifInfra},
	{Endpoint, HostPortFlows, ifInfra},
	{Endpoint, Announcement, sameIfLocal},
	{Endpoint, BGP, ifLocal},
	{Endpoint, HostPlan, ifLocal},
	{Endpoint, Ports, ifLocal},

	{Port, AddressOwner, same},
	{Port, Location, same},
	{Port, GroupTag, same},
	{Port, PolicySubject, same},
	{Port, EndpointFlows, same},
	{Port, PolicyFlows, same},
	{Port, OwnNodeFlows, ifInfra},
	{Port, HostPortFlows, ifHostPort},
	{Port, Announcement, same},
	{Port, BGP, one},
	{Port, HostPlan, one},

	{Rule, TenantRules, tenantOfRule},
	{Rule, TenantFlows, tenantOfRule},
	{Rule, RuleFlows, same},
	{Service, ServiceFlows, same},
	{RuleSet, RuleSetFlows, same},
	{RuleSet, TenantFlows, tenantsOfRuleSet},
	{PolicyPeer, PolicyPeerFlows, same},
	{PolicyPeer, TenantFlows, tenantOfPolicyPeer},
	{EndpointPolicy, PolicySubject, same},
	{EndpointPolicy, RuleSetBridges, ruleSetsOfEndpoint},
	{EndpointPolicy, PolicyFlows, same},
	{EndpointPolicy, TenantFlows, tenantOfSubject},
	{Host, Peer, peerOfHost},
	{Host, ReachFlows, one},
	{Host, HostPlan, one},
	{ControlPorts, ReachFlows, one},
	{ControlPorts, HostPlan, one},
	{Uplink, UplinkFlows, same},
	{Tunnel, Neighbor, allOf(PeerFlows)},

	{Pipeline, FixedFlows, one},
	{Pipeline, PeerFlows, allOf(PeerFlows)},
	{Pipeline, ReachFlows, one},
	{Pipeline, NetworkFlows, allOf(NetworkFlows)},
	{Pipeline, FloodFlows, allOf(FloodFlows)},
	{Pipeline, GroupVLANFlows, allOf(GroupVLANFlows)},
	{Pipeline, RuleFlows, allOf(RuleFlows)},
	{Pipeline, RuleSetFlows, allOf(RuleSetFlows)},
	{Pipeline, PolicyPeerFlows, allOf(PolicyPeerFlows)},
	{Pipeline, ServiceFlows, allOf(ServiceFlows)},
	{Pipeline, EndpointFlows, allOf(EndpointFlows)},
	{Pipeline, PolicyFlows, allOf(PolicyFlows)},
	{Pipeline, OwnNodeFlows, one},
	{Pipeline, TenantFlows, allOf(TenantFlows)},
	{Pipeline, HostPortFlows, one},
	{Pipeline, UplinkFlows, allOf(UplinkFlows)},
	{Pipeline, BGP, one},
	{Pipeline, HostPlan, one},
	{TenantHere, MovedTenants, one},
	{TenantHere, TenantFlows, same},
	{TenantSeen, ServiceFlows, allOf(ServiceFlows)},
	{TenantSeen, TenantFlows, same},
	{TenantRules, MovedTenants, one},
	{MovedTenants, Location, endpointsOfMoved},
	{MovedTenants, NetworkFlows, networksOfMoved},
	{MovedTenants, RuleFlows, rulesOfMoved},
	{MovedTenants, ServiceFlows, servicesOfMoved},
	{MovedTenants, EndpointFlows, endpointsOfMoved},
	{Peer, PeerFlows, same},
	{Peer, Neighbor, same},
	{AddressOwner, EndpointFlows, same},
	{AddressOwner, HostPlan, one},
	{Location, FloodFlows, same},
	{GroupTag, GroupVLANFlows, same},
	{PolicySubject, SubjectBridges, same},
	{PolicySubject, TenantFlows, same},
	{RuleSetBridges, RuleSetFlows, same},
	{SubjectBridges, PolicyPeerFlows, policyPeersOfTenant},
}
