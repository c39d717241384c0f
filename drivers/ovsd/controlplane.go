package ovsd

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/ofnet"
)

// controlPlane is what containers are kept from, besides what the configuration says.
type controlPlane struct {
	addrs []netip.Addr      // of all hosts, sorted
	ports []ofnet.PortRange // that other daemons have told
}

// SetHosts tells the driver the addresses of all hosts, this one's among them: there
// containers do not reach the control plane.
func (d *Driver) SetHosts(addrs []netip.Addr) {
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Equal(addrs, d.control.addrs) {
		return
	}
	d.control.addrs = addrs
	d.refreshReach()
}

// AddControlPorts adds to the ports of the control plane what has been learned of other
// daemons. It is kept when they go: they may come back.
func (d *Driver) AddControlPorts(ports ...ofnet.PortRange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := len(d.control.ports)
	for _, p := range ports {
		if !slices.ContainsFunc(slices.Concat(d.cfg.ControlPorts, d.control.ports), func(r ofnet.PortRange) bool {
			return r.Proto == p.Proto && r.Low <= p.Low && p.High <= r.High
		}) {
			d.control.ports = append(d.control.ports, p)
		}
	}
	if len(d.control.ports) != known {
		d.refreshReach()
	}
}

// refreshReach renews what keeps containers from the control plane. The caller holds mu.
func (d *Driver) refreshReach() {
	d.host.Kick()
	if !d.started {
		return
	}
	c := ofnet.ControlPlane{Addrs: d.control.addrs, Ports: d.closedPorts(), Tunnels: d.cfg.TunnelPorts}
	for _, s := range d.sides {
		if s.pipeline != nil {
			s.sw.Set("reach", s.pipeline.Program(c))
		}
	}
}

func (d *Driver) closedPorts() []ofnet.PortRange {
	return slices.Concat(d.cfg.ControlPorts, d.control.ports)
}

// planReach has the host itself keep containers from the control plane, on all of its
// own addresses and on those of other hosts. The caller holds mu.
func (d *Driver) planReach(p *hostnet.Plan) {
	for _, r := range d.closedPorts() {
		p.Closed.Ports = append(p.Closed.Ports, hostnet.Ports{Proto: r.Proto, Low: r.Low, High: r.High})
	}
	p.Closed.Hosts, p.Closed.Tunnels = d.control.addrs, d.cfg.TunnelPorts
}
