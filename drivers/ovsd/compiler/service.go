package compiler

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// realisedService is a service as the containers of one tenant see it.
type realisedService struct{ id, tenant string }

func (r realisedService) owner() string { return "svc/" + r.id + "@" + r.tenant }

// frontendID is the key of a frontend's number.
type frontendID struct {
	service realisedService
	proto   uint8
	addr    netip.AddrPort
}

// compileService compiles a service once for each tenant that can reach it.
func (c *Compiler) compileService(id string) (out []Output) {
	wanted := map[realisedService]bool{}
	if s, ok := c.Services[id]; ok {
		for _, tenant := range c.clientsOf(s) {
			r := realisedService{id, tenant}
			wanted[r] = true
			out = append(out, c.realise(r, c.service(r, s)))
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.VRFs)) { // a tenant that has a service has a number
		r := realisedService{id, tenant}
		if before, ok := c.services[r]; ok && !wanted[r] {
			out = append(out, c.realise(r, ofnet.Service{ID: id, VRF: before.VRF}))
		}
	}
	return out
}

// clientsOf lists the tenants whose containers reach a service, of those whose flows this host needs.
func (c *Compiler) clientsOf(s drivers.Service) []string {
	if s.Tenant != "" && c.tenantsHere[s.Tenant] {
		return []string{s.Tenant}
	}
	if s.Tenant != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.seen)), func(tenant string) bool { return !c.tenantsHere[tenant] })
}

// realise compiles the new state of a service; one without frontends is removed.
func (c *Compiler) realise(r realisedService, now ofnet.Service) Output {
	before := c.services[r]
	if len(now.Frontends) > 0 {
		c.services[r] = now
	} else {
		delete(c.services, r)
	}
	kept := map[uint32]bool{}
	for _, f := range now.Frontends {
		kept[f.Number] = true
	}
	for _, f := range before.Frontends {
		if !kept[f.Number] {
			c.frontends.free(frontendID{r, f.Proto, f.Addr})
		}
	}
	return Output{
		Kind: ServiceFlows, Key: r.id, Owner: r.owner(), Before: &before, Now: &now,
		Programs: c.everywhere(func(_ ofnet.Encap, p *ofnet.Pipeline) ofnet.Program { return p.Program(now) }),
	}
}

// service is a service as seen by one tenant's containers: with the providers they can
// reach.
func (c *Compiler) service(r realisedService, s drivers.Service) ofnet.Service {
	out := ofnet.Service{ID: r.id, VRF: c.vrf(r.tenant), Affinity: s.Affinity}
	for _, port := range s.Ports {
		for _, vip := range s.VIPs {
			f := ofnet.Frontend{Proto: port.Proto, Addr: netip.AddrPortFrom(vip, port.Port), Drop: s.OnlyLocal}
			for _, p := range port.Providers {
				reachable := (p.Tenant == "" || p.Tenant == r.tenant) && (p.Local || !s.OnlyLocal)
				if reachable && p.Addr.Addr().Is4() == vip.Is4() {
					f.Providers = append(f.Providers, ofnet.Provider{Addr: p.Addr, Draining: p.Draining})
				}
			}
			ofnet.SortProviders(f.Providers)
			f.Providers = slices.CompactFunc(f.Providers, func(a, b ofnet.Provider) bool { return a.Addr == b.Addr })
			f.Number = c.frontends.of(frontendID{r, port.Proto, f.Addr}, ofnet.FrontendKey(out.VRF, port.Proto, f.Addr)&ofnet.MaxFrontend|1, 1, ofnet.MaxFrontend)
			out.Frontends = append(out.Frontends, f)
		}
	}
	return out
}

// Frontend names a port of a service at one of its addresses.
type Frontend struct {
	Service string // id
	Addr    netip.AddrPort
}

// Frontends lists the frontends in the switches, by number.
func (c *Compiler) Frontends() map[uint32]Frontend {
	out := map[uint32]Frontend{}
	for r, s := range c.services {
		for _, f := range s.Frontends {
			out[f.Number] = Frontend{r.id, f.Addr}
		}
	}
	return out
}

// ServicesOf combines the frontends of all services of a VRF into one service.
func (c *Compiler) ServicesOf(vrf uint16) ofnet.Service {
	all := ofnet.Service{VRF: vrf}
	for _, s := range c.services {
		if s.VRF == vrf {
			all.Frontends = append(all.Frontends, s.Frontends...)
		}
	}
	return all
}
