package compiler

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// programs compile the programs of an owner from inputs and facts. They are pure except for
// numbers, which are assigned once and kept.
var programs = [numKinds]struct {
	owner   string // before the key
	compile func(c *Compiler, key string) Programs
}{
	FixedFlows:      {"fixed", (*Compiler).compileFixed},
	PeerFlows:       {"peer/", (*Compiler).compilePeer},
	ReachFlows:      {"reach", (*Compiler).compileReach},
	NetworkFlows:    {"net/", (*Compiler).compileNetwork},
	FloodFlows:      {"flood/", (*Compiler).compileFlood},
	GroupVLANFlows:  {"vlan/", (*Compiler).compileGroupVLAN},
	RuleFlows:       {"rule/", (*Compiler).compileRule},
	RuleSetFlows:    {"rule-set/", (*Compiler).compileRuleSet},
	PolicyPeerFlows: {"policy-peer/", (*Compiler).compilePolicyPeer},
	EndpointFlows:   {"ep/", (*Compiler).compileEndpoint},
	PolicyFlows:     {"endpoint-policy/", (*Compiler).compilePolicy},
	OwnNodeFlows:    {"own-node", (*Compiler).compileOwnNode},
	TenantFlows:     {"vrf/", (*Compiler).compileTenant},
	HostPortFlows:   {"host", (*Compiler).compileHostPort},
	UplinkFlows:     {"uplink/", (*Compiler).compileUplink},
}

func (c *Compiler) compileFixed(string) Programs {
	return c.everywhere(func(_ ofnet.Encap, p *ofnet.Pipeline) ofnet.Program { return p.Program(ofnet.Base{}) })
}

func (c *Compiler) compilePeer(key string) Programs {
	addr, err := netip.ParseAddr(key)
	if err != nil || !c.peered[key] {
		return Programs{}
	}
	return c.in(ofnet.VXLAN, func(p *ofnet.Pipeline) ofnet.Program { return p.Program(ofnet.Peer{VTEP: addr}) })
}

// compileReach blocks containers' access to the control plane.
func (c *Compiler) compileReach(string) Programs {
	reach := ofnet.ControlPlane{Addrs: c.HostAddrs(), Ports: c.ClosedPorts(), Tunnels: c.cfg.TunnelPorts}
	return c.everywhere(func(_ ofnet.Encap, p *ofnet.Pipeline) ofnet.Program { return p.Program(reach) })
}

// ClosedPorts are those of the control plane.
func (c *Compiler) ClosedPorts() []ofnet.PortRange {
	return slices.Concat(c.cfg.ControlPorts, c.ControlPorts)
}

func (c *Compiler) compileNetwork(id string) Programs {
	n, ok := c.Networks[id]
	if !ok || !c.tenantsHere[n.Tenant] {
		return Programs{}
	}
	return c.in(n.Encap, func(p *ofnet.Pipeline) ofnet.Program {
		net := c.network(n)
		net.OwnsAddresses = c.Cluster != nil && c.OwnsSubnets(n)
		return p.Program(net)
	})
}

// network converts a network for the pipeline and decides whether it owns its addresses.
func (c *Compiler) network(n drivers.Network) ofnet.Network {
	out := n.Network
	out.VRF = c.vrf(n.Tenant)
	return out
}

func (c *Compiler) compileFlood(id string) Programs {
	n, ok := c.Networks[id]
	if !ok || !c.tenantsHere[n.Tenant] { // there are no locations then, which are what changes it
		return Programs{}
	}
	return c.in(n.Encap, func(p *ofnet.Pipeline) ofnet.Program {
		ports, vteps := c.locations.of(id)
		return p.Program(ofnet.Flood{Network: c.network(n), Ports: ports, VTEPs: vteps})
	})
}

// compileGroupVLAN maps the VLAN of a group to the network of its endpoints here.
func (c *Compiler) compileGroupVLAN(key string) Programs {
	tag, err := strconv.ParseUint(key, 10, 16)
	id, ok := c.groupTags.first(uint16(tag))
	if err != nil || !ok {
		return Programs{}
	}
	return c.in(ofnet.VLAN, func(p *ofnet.Pipeline) ofnet.Program {
		return p.Program(ofnet.GroupVLAN{Network: c.network(c.Endpoints[id].Network), Tag: uint16(tag)})
	})
}

func (c *Compiler) compileEndpoint(id string) Programs {
	e, known := c.Endpoints[id]
	if !known || !c.reachable(id) || !c.tenantsHere[e.Network.Tenant] {
		return Programs{} // its packets cannot be delivered yet, or there are none
	}
	return c.in(e.Network.Encap, func(p *ofnet.Pipeline) ofnet.Program { return p.Program(c.endpoint(e)) })
}

// endpoint converts an endpoint for the pipeline and adds the addresses the host uses for
// it.
func (c *Compiler) endpoint(e drivers.Endpoint) ofnet.Endpoint {
	port := c.Ports[e.ID]
	out := ofnet.Endpoint{
		ID: e.ID, Encap: e.Network.Encap, VRF: c.vrf(e.Network.Tenant), Tag: e.Network.Tag, VNI: e.Network.VNI,
		Group: e.Group, Policed: c.ruled[e.Network.Tenant], MAC: e.MAC, IPv4: e.IPv4, IPv6: e.IPv6, Port: port.OpenFlow, VTEP: e.VTEP, QoS: e.QoS,
	}
	if access := c.HostAccess(); port.OpenFlow != 0 && !e.Network.Infra && port.Name != 0 && access.Addr4.IsValid() {
		out.Private4, out.Private6 = privateAddrs(access.Subnet4, port.Name)
		out.OwnsIPv4, out.OwnsIPv6 = c.owners.is(e.ID, e.IPv4), c.owners.is(e.ID, e.IPv6)
	}
	return out
}

func (c *Compiler) compileUplink(name string) Programs {
	u, ok := c.Uplinks[name]
	if !ok {
		return Programs{}
	}
	return c.in(ofnet.VLAN, func(p *ofnet.Pipeline) ofnet.Program { return p.Program(u) })
}

// compileHostPort compiles the flows to and from the host's own port.
func (c *Compiler) compileHostPort(string) Programs {
	return c.everywhere(func(e ofnet.Encap, p *ofnet.Pipeline) ofnet.Program {
		port := c.Ports[HostEndpoint(e)].OpenFlow
		if port == 0 {
			return ofnet.Program{}
		}
		return p.Program(ofnet.HostPort{Port: port, Infra: c.InfraAddrs()})
	})
}
