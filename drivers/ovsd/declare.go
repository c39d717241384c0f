package ovsd

import (
	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// setGlobal chooses the pipelines.
func (d *Driver) setGlobal(g drivers.Global) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.global == g {
		return
	}
	d.global = g
	d.rebuild()
	d.wantRepair() // the mode has a say in what the uplinks carry
}

// setNetwork declares a network.
func (d *Driver) setNetwork(n drivers.Network) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.networks[n.ID]
	if old == n {
		return
	}
	d.networks[n.ID] = n
	if old.Encap != n.Encap { // deleted and made again between two looks at the store
		d.leaveBridge(old.Encap, "net/"+n.ID, "flood/"+n.ID)
	}
	d.refreshNetwork(n.ID)
	d.refreshMeant(old)
	d.refreshMeant(n)
	d.tenantSeen(n.Tenant)
	d.wantRepair() // the uplinks may have to carry its VLAN
}

// leaveBridge removes the flows of owners from the bridge of an encapsulation. The caller
// holds mu.
func (d *Driver) leaveBridge(encap ofnet.Encap, owners ...string) {
	if s := d.sides[encap]; s != nil {
		for _, owner := range owners {
			s.sw.Remove(owner)
		}
	}
}

// removeNetwork takes a declaration back.
func (d *Driver) removeNetwork(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := d.networks[id]
	delete(d.networks, id)
	d.refreshMeant(gone)
	d.wantRepair() // the uplinks need not carry its VLAN
	for _, s := range d.sides {
		s.sw.Remove("net/" + id)
		s.sw.Remove("flood/" + id)
	}
	d.host.Kick()
}

// setEndpoint declares an endpoint of this or another host.
func (d *Driver) setEndpoint(e drivers.Endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.endpoints[e.ID]
	if old == e {
		return
	}
	if old.VLAN() != e.VLAN() {
		d.wantRepair() // its port may be in another VLAN
	}
	d.endpoints[e.ID] = e
	if old.Network.Encap != e.Network.Encap {
		d.leaveBridge(old.Network.Encap, "ep/"+e.ID, "guard/"+e.ID)
		d.refreshSetsOf(e.ID)
	}
	d.refreshEndpoint(e.ID)
	d.router.wake()
	if e.Local && e.Network.Infra {
		d.wantRepair() // for its port
		d.refreshHostPorts()
	}
	d.broadcast()
}

// removeEndpoint takes a declaration back. The port of a local endpoint stays until Detach.
func (d *Driver) removeEndpoint(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	infra := d.endpoints[id].Network.Infra
	delete(d.endpoints, id)
	for _, s := range d.sides {
		s.sw.Remove("ep/" + id)
	}
	d.reachable(id)
	d.refreshEndpointPolicy(id)
	d.refreshSetsOf(id)
	if infra {
		d.refreshOwnNode()
		d.refreshHostPorts()
		d.wantRepair()
	}
	d.moved(id, place{})
	d.router.wake()
	d.noteForAnnouncement(drivers.Endpoint{ID: id}, 0)
	d.refreshGroupVLAN(drivers.Endpoint{ID: id}, false)
	d.broadcast()
}

// storeSynced allows the switches to sweep what nobody declared.
func (d *Driver) storeSynced() {
	d.mu.Lock()
	d.complete = true
	d.refreshPolicies()
	d.broadcast()
	if d.router.wanted != nil {
		d.sides[ofnet.VLAN].sw.HoldStaleRoutes()
	}
	d.router.wake()
	d.mu.Unlock()
	d.wantRepair() // there may be ports and VLANs of what is gone
	d.host.Kick()
	for _, s := range d.sides {
		s.sw.Complete()
	}
}

// rebuild chooses the pipelines anew and renews all flows. The caller holds mu.
func (d *Driver) rebuild() {
	if !d.started || d.global.FwdMode == "" {
		return
	}
	for _, s := range d.sides {
		s.pipeline, s.modeErr = ofnet.NewPipeline(ofnet.Settings{
			Encap: s.encap, Routing: d.global.FwdMode == "routing", ARPFlood: d.global.ARPMode == "flood",
			AllowSpoofing: d.cfg.AllowSpoofing, NDByAgent: d.kernelBridge(s.bridge), TunnelPort: tunnelOFPort, HostMAC: ofnet.HostMAC(d.cfg.VTEP), Round: s.round, EndpointPolicies: d.cfg.EndpointPolicies, DNS: d.dnsSettings(), ConnectionRate: d.cfg.ConnectionRate, Host: d.withFar(d.hostAccess()),
		})
		if s.pipeline == nil {
			s.sw.RemoveAll()
			continue
		}
		s.sw.SetLearned(s.pipeline.Learned()...)
		s.sw.Set("fixed", s.pipeline.Program(ofnet.Base{}))
	}
	for p := range d.peers {
		d.refreshPeer(p)
	}
	for id := range d.networks {
		d.refreshNetwork(id)
	}
	for id := range d.endpoints {
		d.refreshEndpoint(id)
	}
	for id := range d.rules {
		d.refreshRule(id)
	}
	d.refreshEndpointPolicies()
	d.refreshPolicies()
	d.refreshServices()
	d.refreshReach()
	for _, s := range d.sides {
		d.refreshHostPort(s)
	}
	d.refreshUplinks(d.uplinks)
	d.router.wake()
	d.host.Kick()
}

// kernelBridge reports whether a bridge uses the kernel's datapath.
func (d *Driver) kernelBridge(name string) bool {
	_, row, _ := d.find("Bridge", "name", name)
	return row.String("datapath_type") != "netdev"
}

func (d *Driver) refreshNetwork(id string) {
	n := d.networks[id]
	s := d.sides[n.Encap]
	if !d.started || s == nil || s.pipeline == nil {
		return
	}
	s.sw.Set("net/"+id, s.pipeline.Program(d.asNetwork(n)))
	d.refreshFlood(id)
	d.host.Kick()
}

func (d *Driver) asNetwork(n drivers.Network) ofnet.Network {
	out := n.Network
	out.VRF, out.OwnsAddresses = d.vrf(n.Tenant), d.reach.cluster && d.meant(n)
	return out
}

func (d *Driver) refreshEndpoint(id string) {
	e, ok := d.endpoints[id]
	s := d.sides[e.Network.Encap]
	if !d.started || !ok || s == nil || s.pipeline == nil {
		return
	}
	d.reachable(id)
	port := d.ports[id]
	d.refreshEndpointPolicy(id)
	d.noteForAnnouncement(e, port)
	d.refreshGroupVLAN(e, port != 0)
	if e.Local != (port != 0) || (!e.Local && e.Network.Encap == ofnet.VXLAN && !e.VTEP.IsValid()) {
		s.sw.Remove("ep/" + id) // nowhere to send its packets yet
		d.moved(id, place{})
		return
	}
	d.moved(id, place{network: e.Network.ID, port: port, vtep: e.VTEP})
	s.sw.Set("ep/"+id, s.pipeline.Program(d.asEndpoint(e)))
}

// asEndpoint is an endpoint as the pipeline sees it. The caller holds mu.
func (d *Driver) asEndpoint(e drivers.Endpoint) ofnet.Endpoint {
	return d.withHost(ofnet.Endpoint{
		ID: e.ID, Encap: e.Network.Encap, VRF: d.vrf(e.Network.Tenant), Tag: e.Network.Tag, VNI: e.Network.VNI,
		Group: e.Group, Policed: d.ruleSets[e.Network.Tenant] != nil, MAC: e.MAC, IPv4: e.IPv4, IPv6: e.IPv6, Port: d.ports[e.ID], VTEP: e.VTEP, QoS: e.QoS,
	}, e.Network)
}

func (d *Driver) refreshUplinks(links []ofnet.Uplink) {
	s := d.sides[ofnet.VLAN]
	now := map[string]bool{}
	for _, u := range links {
		now[u.Name] = true
		if s.pipeline != nil {
			s.sw.Set("uplink/"+u.Name, s.pipeline.Program(u))
		}
	}
	for _, u := range d.uplinks {
		if !now[u.Name] {
			s.sw.Remove("uplink/" + u.Name)
		}
	}
	if recovered(d.uplinks, links) {
		// More than once: the switch beyond may have to find out whether to let frames
		// through first (IEEE 802.1D, 802.1AX).
		for id := range d.announce.last {
			d.announce.schedule(id, askedTimes)
		}
	}
	d.uplinks = links
}
