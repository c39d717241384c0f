package ovsd

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/ofnet"
)

// floods counts, per network, the local ports and the other hosts that have endpoints
// of it. The driver's lock guards it.
type floods struct {
	places   map[string]place // by endpoint id
	networks map[string]map[place]int
}

// place is where one endpoint of a network is: a port of this host, or another host.
type place struct {
	network string
	port    uint32
	vtep    netip.Addr
}

func newFloods() floods {
	return floods{places: map[string]place{}, networks: map[string]map[place]int{}}
}

// put says where an endpoint is now, the zero place for nowhere, and returns the
// networks whose frames for everybody go elsewhere than before.
func (f *floods) put(endpoint string, now place) (changed []string) {
	before, had := f.places[endpoint]
	if before == now {
		return nil
	}
	if had {
		delete(f.places, endpoint)
		if f.count(before, -1) == 0 {
			changed = append(changed, before.network)
		}
	}
	if now != (place{}) {
		f.places[endpoint] = now
		if f.count(now, 1) == 1 && !slices.Contains(changed, now.network) {
			changed = append(changed, now.network)
		}
	}
	return changed
}

func (f *floods) count(p place, by int) int {
	net := f.networks[p.network]
	if net == nil {
		net = map[place]int{}
		f.networks[p.network] = net
	}
	net[p] += by
	n := net[p]
	if n == 0 {
		delete(net, p)
	}
	if len(net) == 0 {
		delete(f.networks, p.network)
	}
	return n
}

// of lists a network's places in an order that does not depend on history.
func (f *floods) of(network string) (ports []uint32, vteps []netip.Addr) {
	for p := range f.networks[network] {
		if p.port != 0 {
			ports = append(ports, p.port)
		} else {
			vteps = append(vteps, p.vtep)
		}
	}
	slices.Sort(ports)
	slices.SortFunc(vteps, netip.Addr.Compare)
	return ports, vteps
}

// moved notes where an endpoint is and renews what floods its network. The caller
// holds mu.
func (d *Driver) moved(endpoint string, now place) {
	for _, network := range d.floods.put(endpoint, now) {
		d.refreshFlood(network)
	}
}

func (d *Driver) refreshFlood(network string) {
	n, ok := d.networks[network]
	s := d.sides[n.Encap]
	if !d.started || !ok || s == nil || s.pipeline == nil {
		return
	}
	ports, vteps := d.floods.of(network)
	s.sw.Set("flood/"+network, s.pipeline.Program(ofnet.Flood{Network: d.asNetwork(n), Ports: ports, VTEPs: vteps}))
}
