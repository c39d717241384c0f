package ovsd

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// services are those declared, and what of them is in the switches. The driver's lock
// guards it.
type services struct {
	declared map[string]drivers.Service
	tenants  map[string]bool                   // those there are networks of
	realised map[realisedService]ofnet.Service // with the last flows that were wanted
	seats    map[seatID]uint32
	taken    map[uint32]seatID
}

// realisedService is a service as the containers of one tenant see it.
type realisedService struct{ id, tenant string }

func (r realisedService) owner() string { return "svc/" + r.id + "@" + r.tenant }

// seatID is what a seat's number is for.
type seatID struct {
	service realisedService
	proto   uint8
	addr    string
}

func newServices() services {
	return services{
		declared: map[string]drivers.Service{}, tenants: map[string]bool{}, realised: map[realisedService]ofnet.Service{},
		seats: map[seatID]uint32{}, taken: map[uint32]seatID{},
	}
}

// number returns a seat's number. It follows from what the seat is, unless another seat
// has that number.
func (s *services) number(id seatID, key uint32) uint32 {
	if n, ok := s.seats[id]; ok {
		return n
	}
	n := key&ofnet.MaxFrontend | 1
	for _, used := s.taken[n]; used || n == 0; _, used = s.taken[n] {
		n = (n + 1) & ofnet.MaxFrontend
	}
	s.seats[id], s.taken[n] = n, id
	return n
}

// setService declares a service.
func (d *Driver) setService(s drivers.Service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.services.declared[s.ID]; ok && old.Equal(s) {
		return
	}
	d.services.declared[s.ID] = s
	d.refreshService(s.ID)
}

// removeService takes a declaration back.
func (d *Driver) removeService(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.services.declared, id)
	d.refreshService(id)
}

// tenantSeen makes the services of all tenants reachable for one more. The caller holds
// mu.
func (d *Driver) tenantSeen(tenant string) {
	if d.services.tenants[tenant] {
		return
	}
	d.services.tenants[tenant] = true
	for id, s := range d.services.declared {
		if s.Tenant == "" {
			d.refreshService(id)
		}
	}
}

func (d *Driver) refreshServices() {
	for id := range d.services.declared {
		d.refreshService(id)
	}
}

// refreshService has the switches lead to what a service is now, and forget connections
// to providers that it has no more. The caller holds mu.
func (d *Driver) refreshService(id string) {
	if !d.started {
		return
	}
	s, ok := d.services.declared[id]
	wanted := map[realisedService]bool{}
	if ok {
		tenants := []string{s.Tenant}
		if s.Tenant == "" {
			tenants = slices.Collect(maps.Keys(d.services.tenants))
		}
		for _, tenant := range tenants {
			r := realisedService{id, tenant}
			wanted[r] = true
			d.realise(r, d.asService(r, s))
		}
	}
	for r := range d.services.realised {
		if r.id == id && !wanted[r] {
			d.realise(r, ofnet.Service{})
		}
	}
}

// realise puts a service into the switches; one without seats is taken out.
func (d *Driver) realise(r realisedService, now ofnet.Service) {
	before := d.services.realised[r]
	gone := ofnet.GoneConnections(before, now)
	for _, side := range d.sides {
		if side.pipeline == nil {
			continue
		}
		side.sw.Set(r.owner(), side.pipeline.Program(now))
	}
	// Both bridges of a host share one connection table.
	d.sides[ofnet.VXLAN].sw.Forget(gone...)
	if len(gone) > 0 {
		time.AfterFunc(staleCopies, func() { d.forgetAgain(before) })
	}
	if len(now.Frontends) > 0 {
		d.services.realised[r] = now
	} else {
		delete(d.services.realised, r)
	}
	kept := map[uint32]bool{}
	for _, seat := range now.Frontends {
		kept[seat.Number] = true
	}
	for _, seat := range before.Frontends {
		if !kept[seat.Number] {
			delete(d.services.seats, d.services.taken[seat.Number])
			delete(d.services.taken, seat.Number)
		}
	}
}

// staleCopies is longer than the datapath goes on with copies of former flows.
const staleCopies = 2 * time.Second

// forgetAgain forgets connections to what a service was that have begun by copies of
// former flows. They would lead nowhere for as long as the client goes on trying.
func (d *Driver) forgetAgain(before ofnet.Service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := ofnet.Service{VRF: before.VRF} // of all services, as another may lead there by now
	for _, s := range d.services.realised {
		if s.VRF == before.VRF {
			now.Frontends = append(now.Frontends, s.Frontends...)
		}
	}
	d.sides[ofnet.VXLAN].sw.Forget(ofnet.GoneConnections(before, now)...)
}

// asService is a service as one tenant's containers see it: of providers, those that
// they can reach.
func (d *Driver) asService(r realisedService, s drivers.Service) ofnet.Service {
	out := ofnet.Service{ID: r.id, VRF: d.vrf(r.tenant), Affinity: s.Affinity}
	for _, port := range s.Ports {
		for _, vip := range s.VIPs {
			seat := ofnet.Frontend{Proto: port.Proto, Addr: netip.AddrPortFrom(vip, port.Port), Drop: s.OnlyLocal}
			for _, p := range port.Providers {
				reachable := (p.Tenant == "" || p.Tenant == r.tenant) && (p.Local || !s.OnlyLocal)
				if reachable && p.Addr.Addr().Is4() == vip.Is4() {
					seat.Providers = append(seat.Providers, ofnet.Provider{Addr: p.Addr, Draining: p.Draining})
				}
			}
			ofnet.SortProviders(seat.Providers)
			seat.Providers = slices.CompactFunc(seat.Providers, func(a, b ofnet.Provider) bool { return a.Addr == b.Addr })
			seat.Number = d.services.number(seatID{r, port.Proto, seat.Addr.String()}, ofnet.FrontendKey(out.VRF, port.Proto, seat.Addr))
			out.Frontends = append(out.Frontends, seat)
		}
	}
	return out
}
