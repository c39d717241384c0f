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

// HostReady returns nil when the host's own side, by which it reaches containers and
// they the world, is as it should be, or what is amiss.
func (d *Driver) HostReady() error {
	d.mu.Lock()
	err := d.reach.err
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.host.Err()
}

// hostPlan is how the host's own side is to be, once everything has been declared: a
// predecessor's routes stay until then.
func (d *Driver) hostPlan() (hostnet.Plan, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	access := d.hostAccess()
	if !d.started || !d.complete || d.global.FwdMode == "" {
		return hostnet.Plan{}, false
	}
	if !access.Addr4.IsValid() {
		return hostnet.Plan{}, true
	}
	routing := d.global.FwdMode == "routing"
	h := access.MAC
	p := hostnet.Plan{
		Links: []hostnet.Link{
			{
				Name: hostPortVXLAN, MAC: h, MTU: d.sides[ofnet.VXLAN].mtu(), NoARP: true,
				Addrs: []netip.Prefix{netip.PrefixFrom(access.Addr4, access.Subnet4.Bits()), netip.PrefixFrom(access.Addr6, access.Subnet6.Bits())},
			},
			{Name: hostPortVLAN, MAC: h, MTU: d.sides[ofnet.VLAN].mtu(), NoARP: true},
		},
		Guarded: []string{hostPortVXLAN, hostPortVLAN},
		Deaf:    []string{portPrefix + "*"},
		World4:  routing || d.reach.cluster, World6: (routing || d.reach.cluster) && d.anyIPv6(), Outside: []netip.Addr{d.cfg.CtrlIP},
	}
	// The switch takes what is from these addresses for the host's own.
	p.Own = append([]netip.Addr{access.Addr4, access.Addr6}, d.infraAddrs()...)
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
	for _, n := range d.networks {
		if n.Subnet6.IsValid() && (n.Encap == ofnet.VXLAN || d.reach.cluster) {
			return true
		}
	}
	return false
}

// planContainers routes what the host sends to its own containers to them.
func (d *Driver) planContainers(p *hostnet.Plan, access ofnet.HostAccess) {
	for addr, id := range d.reach.direct.winners() {
		e := d.endpoints[id]
		s := d.sides[e.Network.Encap]
		if s == nil || s.pipeline == nil {
			continue
		}
		src := access.Addr4
		if addr.Is6() {
			src = access.Addr6
		}
		p.Routes = append(p.Routes, hostnet.Route{Dst: netip.PrefixFrom(addr, addr.BitLen()), Link: s.hostName(), Src: src})
	}
}

// planInfra configures the host's ports in infra networks. Through the gateway network
// the host reaches the networks that the switch routes to, those of the same tenant,
// and the services.
func (d *Driver) planInfra(p *hostnet.Plan, routing bool) {
	for name, port := range d.wantedHostPorts() {
		e, ok := d.endpoints[port.endpoint]
		s := d.sides[e.Network.Encap]
		if !ok || s == nil || netx.CheckLinkName(name) != nil { // addHostPort says so
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
	subnets := slices.Clone(d.reach.services)
	for _, n := range d.networks {
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

// noteSetting keeps the former value of a kernel setting with the bridge, for Cleanup.
func (d *Driver) noteSetting(path, old string) error {
	ctx, cancel := context.WithTimeout(context.Background(), settingTimeout)
	defer cancel()
	id, row, ok := d.find("Bridge", "name", VXLANBridge)
	if _, noted := row.Map("external_ids")[settingKeyPrefix+path]; noted || !ok {
		return nil
	}
	return d.setExternalID(ctx, "Bridge", id, settingKeyPrefix+path, old)
}
