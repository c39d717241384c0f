package ovsd

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/ofnet"
)

func (d *Driver) reachCluster(services []netip.Prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reach.cluster, d.reach.services = true, slices.Clone(services)
	d.rebuild()
}

// farPrefix6 and the host's IPv4 address among hosts are its IPv6 address among hosts,
// where it has no other one: beside the private subnets, whose fourth group is that of
// an IPv4 prefix (255.255 is none of).
var farPrefix6 = [8]byte{0xfd, 'c', 'o', 'n', 't', 'i', 0xff, 0xff}

// farAddrs are a host's among hosts, by what it has.
func farAddrs(own ...netip.Addr) (four, six netip.Addr) {
	for _, a := range own {
		switch a = a.Unmap(); {
		case a.Is4() && !four.IsValid():
			four = a
		case a.Is6() && !six.IsValid():
			six = a
		}
	}
	if four.IsValid() && !six.IsValid() {
		var b [16]byte
		copy(b[:], farPrefix6[:])
		copy(b[12:], four.AsSlice())
		six = netip.AddrFrom16(b)
	}
	return four, six
}

// withFar completes how the host and containers reach each other with how they do over
// tunnels. The caller holds mu.
func (d *Driver) withFar(h ofnet.HostAccess) ofnet.HostAccess {
	if d.reach.cluster && d.cfg.VTEP.IsValid() && h.Addr4.IsValid() {
		// Network policies mean a host by the address that the cluster knows it by.
		h.NodeSNAT4, h.NodeSNAT6 = farAddrs(d.cfg.CtrlIP, d.cfg.VTEP)
		h.Tunnel6 = d.cfg.VTEP.Unmap().Is6()
	}
	return h
}

// meant reports whether the host means a network by the addresses of its subnets:
// tenants may have the same ones. The first of those that overlap is meant, in the order
// of before. The caller holds mu.
func (d *Driver) meant(n drivers.Network) bool {
	for _, o := range d.networks {
		if o.ID != n.ID && o.Encap == ofnet.VXLAN && (overlap(o.Subnet4, n.Subnet4) || overlap(o.Subnet6, n.Subnet6)) &&
			before(o.Tenant, o.ID, n.Tenant, n.ID) {
			return false
		}
	}
	return true
}

func overlap(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && a.Overlaps(b) }

// refreshMeant renews the flows of networks that n's coming or going makes the host mean
// or not mean any more. The caller holds mu.
func (d *Driver) refreshMeant(n drivers.Network) {
	if !d.reach.cluster {
		return
	}
	for id, o := range d.networks {
		if id != n.ID && (overlap(o.Subnet4, n.Subnet4) || overlap(o.Subnet6, n.Subnet6)) {
			d.refreshNetwork(id)
		}
	}
}

// planCluster routes what the host sends to networks and services through its own port,
// unless it has another way in the plan. The caller holds mu.
func (d *Driver) planCluster(p *hostnet.Plan, access ofnet.HostAccess, routing bool) {
	if !d.reach.cluster {
		return
	}
	subnets := slices.Clone(d.reach.services)
	for _, n := range d.networks {
		if routing && n.Encap == ofnet.VXLAN && !n.Infra && d.meant(n) {
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
