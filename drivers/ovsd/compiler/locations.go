package compiler

import (
	"net/netip"
	"slices"
)

// locations counts, per network, the local ports and the other hosts with endpoints in it.
type locations struct {
	endpoints map[string]location // by endpoint id
	networks  map[string]map[location]int
}

// location is where one endpoint of a network is: on a port of this host, or on another
// host.
type location struct {
	network string
	port    uint32
	vtep    netip.Addr
}

func newLocations() locations {
	return locations{endpoints: map[string]location{}, networks: map[string]map[location]int{}}
}

// put records where an endpoint is, the zero location for nowhere, and returns the networks
// whose flood group changes.
func (l *locations) put(endpoint string, now location) (changed []string) {
	before, had := l.endpoints[endpoint]
	if before == now {
		return nil
	}
	if had {
		delete(l.endpoints, endpoint)
		if l.count(before, -1) == 0 {
			changed = append(changed, before.network)
		}
	}
	if now != (location{}) {
		l.endpoints[endpoint] = now
		if l.count(now, 1) == 1 && !slices.Contains(changed, now.network) {
			changed = append(changed, now.network)
		}
	}
	return changed
}

func (l *locations) count(p location, by int) int {
	net := l.networks[p.network]
	if net == nil {
		net = map[location]int{}
		l.networks[p.network] = net
	}
	net[p] += by
	n := net[p]
	if n == 0 {
		delete(net, p)
	}
	if len(net) == 0 {
		delete(l.networks, p.network)
	}
	return n
}

// of lists a network's endpoints in an order that does not depend on history.
func (l *locations) of(network string) (ports []uint32, vteps []netip.Addr) {
	for p := range l.networks[network] {
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
