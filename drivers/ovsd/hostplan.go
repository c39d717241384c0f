package ovsd

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/netx"
)

// HostReady returns nil when the host's own links, routes and rules are set up, or else
// what is missing.
func (d *Driver) HostReady() error {
	d.mu.Lock()
	err := d.status.hostErr
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.host.Err()
}

// hostPlan is the desired configuration of the host itself. There is none before the
// initial sync: until then the routes of an earlier agent stay.
func (d *Driver) hostPlan() (hostnet.Plan, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	access := d.compiler.HostAccess()
	if !d.status.started || !d.whole || d.compiler.Global.FwdMode == "" {
		return hostnet.Plan{}, false
	}
	if !access.Addr4.IsValid() {
		return hostnet.Plan{}, true
	}
	routing := d.compiler.Global.FwdMode == "routing"
	h := access.MAC
	p := hostnet.Plan{
		Links: []hostnet.Link{
			{
				Name: hostPortVXLAN, MAC: h, MTU: d.bridges[ofnet.VXLAN].mtu(), NoARP: true,
				Addrs: []netip.Prefix{netip.PrefixFrom(access.Addr4, access.Subnet4.Bits()), netip.PrefixFrom(access.Addr6, access.Subnet6.Bits())},
			},
			{Name: hostPortVLAN, MAC: h, MTU: d.bridges[ofnet.VLAN].mtu(), NoARP: true},
		},
		Guarded: []string{hostPortVXLAN, hostPortVLAN},
		Deaf:    []string{portPrefix + "*"},
		World4:  routing || d.compiler.Cluster != nil, World6: (routing || d.compiler.Cluster != nil) && d.anyIPv6(), Outside: []netip.Addr{d.cfg.CtrlIP},
	}
	// The switch treats packets from these addresses as the host's own.
	p.Own = append([]netip.Addr{access.Addr4, access.Addr6}, d.compiler.InfraAddrs()...)
	under := func(link string, forwarded hostnet.Sender) {
		p.NAT = append(p.NAT, hostnet.NAT{Out: link, To: access.Addr4, Sender: hostnet.ThisHost}, hostnet.NAT{Out: link, To: access.Addr6, Sender: hostnet.ThisHost},
			hostnet.NAT{Out: link, To: access.Pass4, Sender: forwarded}, hostnet.NAT{Out: link, To: access.Pass6, Sender: forwarded})
	}
	under(hostPortVLAN, hostnet.Others)
	if routing { // containers know the way back to all but each other
		under(hostPortVXLAN, hostnet.Containers)
	} else {
		under(hostPortVXLAN, hostnet.Others)
	}
	d.planInfra(&p, routing)
	for i := range p.NAT {
		if p.NAT[i].Sender == hostnet.Containers {
			p.NAT[i].Inside = p.Guarded
		}
	}
	if routing {
		inside := slices.Clone(p.Guarded)
		p.NAT = append(p.NAT, hostnet.NAT{From: access.Subnet4, Inside: inside}, hostnet.NAT{From: access.Subnet6, Inside: inside})
	}
	d.planCluster(&p, access, routing)
	d.planContainers(&p, access)
	d.planReach(&p)
	return p, true
}

func (d *Driver) anyIPv6() bool {
	for _, n := range d.compiler.Networks {
		if n.Subnet6.IsValid() && (n.Encap == ofnet.VXLAN || d.compiler.Cluster != nil) {
			return true
		}
	}
	return false
}

// planContainers adds routes from the host to its own containers.
func (d *Driver) planContainers(p *hostnet.Plan, access ofnet.HostAccess) {
	for addr, id := range d.compiler.AddressOwners() {
		e := d.compiler.Endpoints[id]
		s := d.bridges[e.Network.Encap]
		if s == nil || d.pipeline(s) == nil {
			continue
		}
		src := access.Addr4
		if addr.Is6() {
			src = access.Addr6
		}
		p.Routes = append(p.Routes, hostnet.Route{Dst: netip.PrefixFrom(addr, addr.BitLen()), Link: s.hostName(), Src: src})
	}
}

// planInfra configures the host's ports in infra networks. Through the gateway network the
// host reaches the routed networks of the same tenant and the services.
func (d *Driver) planInfra(p *hostnet.Plan, routing bool) {
	for _, port := range d.compiler.InfraPorts() {
		name, e := port.Name, port.Endpoint
		s := d.bridges[e.Network.Encap]
		if s == nil || netx.CheckLinkName(name) != nil { // addHostPort reports it
			continue
		}
		link := hostnet.Link{Name: name, MAC: e.MAC, MTU: s.mtu()}
		for addr, subnet := range map[netip.Addr]netip.Prefix{e.IPv4: e.Network.Subnet4, e.IPv6: e.Network.Subnet6} {
			if addr.IsValid() && subnet.IsValid() {
				link.Addrs = append(link.Addrs, netip.PrefixFrom(addr, subnet.Bits()))
				p.NAT = append(p.NAT, hostnet.NAT{Out: name, To: addr})
			}
		}
		p.Links = append(p.Links, link)
		p.Guarded = append(p.Guarded, name)
		if name == gatewayNetwork && routing && e.Network.Encap == ofnet.VXLAN {
			p.Routes = append(p.Routes, d.gatewayRoutes(name, e)...)
		}
	}
	slices.SortFunc(p.NAT, func(a, b hostnet.NAT) int { return cmp.Or(cmp.Compare(a.Out, b.Out), a.To.Compare(b.To)) })
	slices.Sort(p.Guarded)
}

func (d *Driver) gatewayRoutes(link string, e drivers.Endpoint) []hostnet.Route {
	subnets := d.serviceSubnets()
	for _, n := range d.compiler.Networks {
		if n.Encap == ofnet.VXLAN && !n.Infra && n.Tenant == e.Network.Tenant {
			subnets = append(subnets, n.Subnet4, n.Subnet6)
		}
	}
	var out []hostnet.Route
	for _, s := range subnets {
		src := e.IPv4
		if s.Addr().Is6() {
			src = e.IPv6
		}
		if s.IsValid() && src.IsValid() {
			out = append(out, hostnet.Route{Dst: s, Link: link, Src: src})
		}
	}
	return out
}

// serviceSubnets are the subnets of service addresses that this host translates.
func (d *Driver) serviceSubnets() []netip.Prefix {
	if d.compiler.Cluster == nil {
		return nil
	}
	return slices.Clone(d.compiler.Cluster.Services)
}

// planCluster routes networks and services through the host's own port, unless the plan has
// another route to them. The caller holds mu.
func (d *Driver) planCluster(p *hostnet.Plan, access ofnet.HostAccess, routing bool) {
	if d.compiler.Cluster == nil {
		return
	}
	subnets := d.serviceSubnets()
	for _, n := range d.compiler.Networks {
		if routing && n.Encap == ofnet.VXLAN && !n.Infra && d.compiler.OwnsSubnets(n) {
			subnets = append(subnets, n.Subnet4, n.Subnet6)
		}
	}
	for _, s := range subnets {
		if !s.IsValid() || slices.ContainsFunc(p.Routes, func(r hostnet.Route) bool { return r.Dst == s }) {
			continue
		}
		src := access.Addr4
		if s.Addr().Is6() {
			src = access.Addr6
		}
		p.Routes = append(p.Routes, hostnet.Route{Dst: s, Link: hostPortVXLAN, Src: src})
	}
	slices.SortFunc(p.Routes, func(a, b hostnet.Route) int {
		return cmp.Or(a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(), b.Dst.Bits()))
	})
}

// planReach blocks containers' access to the control plane at the host's own addresses and
// those of other hosts. The caller holds mu.
func (d *Driver) planReach(p *hostnet.Plan) {
	for _, r := range d.compiler.ClosedPorts() {
		p.Closed.Ports = append(p.Closed.Ports, hostnet.Ports{Proto: r.Proto, Low: r.Low, High: r.High})
	}
	p.Closed.Hosts, p.Closed.Tunnels = d.compiler.HostAddrs(), d.cfg.TunnelPorts
}

// noteSetting records the former value of a kernel setting with the bridge, for Cleanup.
func (d *Driver) noteSetting(path, old string) error {
	ctx, cancel := context.WithTimeout(context.Background(), settingTimeout)
	defer cancel()
	id, row, ok := d.find("Bridge", "name", VXLANBridge)
	if _, noted := row.Map("external_ids")[settingKeyPrefix+path]; noted || !ok {
		return nil
	}
	return d.setExternalID(ctx, "Bridge", id, settingKeyPrefix+path, old)
}
