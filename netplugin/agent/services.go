package agent

import (
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/state"
)

// services joins what a service is made of: its record, the list of its providers, and
// the providers' endpoints, which say on which host they are and what other address
// they have. The agent's lock guards it.
type services struct {
	records   map[string]state.ServiceLB
	lists     map[string]state.ProviderList
	providing map[string]map[string]struct{} // service ids by endpoint id
	stale     map[string]struct{}            // to be declared again
}

func newServices() services {
	return services{
		records: map[string]state.ServiceLB{}, lists: map[string]state.ProviderList{},
		providing: map[string]map[string]struct{}{}, stale: map[string]struct{}{},
	}
}

func (a *Agent) setService(rec state.ServiceLB) {
	a.unindexService(rec.ID)
	a.services.records[rec.ID] = rec
	for _, p := range rec.Providers {
		index(a.services.providing, p.EpIDKey, rec.ID)
	}
	a.services.stale[rec.ID] = struct{}{}
}

func (a *Agent) removeService(id string) {
	a.unindexService(id)
	delete(a.services.records, id)
	a.services.stale[id] = struct{}{}
}

func (a *Agent) unindexService(id string) {
	for _, p := range a.services.records[id].Providers {
		delete(a.services.providing[p.EpIDKey], id)
		if len(a.services.providing[p.EpIDKey]) == 0 {
			delete(a.services.providing, p.EpIDKey)
		}
	}
}

func (a *Agent) setProviders(list state.ProviderList) {
	a.services.lists[list.ID] = list
	a.services.stale[list.ID] = struct{}{}
}

func (a *Agent) removeProviders(id string) {
	delete(a.services.lists, id)
	a.services.stale[id] = struct{}{}
}

// providerChanged is called when an endpoint has changed.
func (a *Agent) providerChanged(endpoint string) {
	for id := range a.services.providing[endpoint] {
		a.services.stale[id] = struct{}{}
	}
}

// declareServices declares the services that have changed, each once.
func (a *Agent) declareServices() {
	for id := range a.services.stale {
		delete(a.services.stale, id)
		rec, ok := a.services.records[id]
		if !ok {
			a.cfg.Driver.Delete(drivers.KindService, id)
			continue
		}
		s, err := a.asService(rec)
		if err != nil {
			a.cfg.Log.WithError(err).Error("a service is ignored")
			a.cfg.Driver.Delete(drivers.KindService, id)
			continue
		}
		a.cfg.Driver.Apply(s)
	}
}

// asService reads a service's record. Every provider answers at the same port.
func (a *Agent) asService(rec state.ServiceLB) (drivers.Service, error) {
	s := drivers.Service{ID: rec.ID, Tenant: rec.Tenant}
	for _, text := range []string{rec.IPAddress, rec.IPv6Address} {
		vip, err := optionalAddr(text)
		if err != nil {
			return s, fmt.Errorf("service %s: address: %w", rec.ID, err)
		}
		if vip.IsValid() {
			s.VIPs = append(s.VIPs, vip)
		}
	}
	var addrs []drivers.ServiceProvider
	for _, text := range a.services.lists[rec.ID].Providers {
		own, err := netip.ParseAddr(text)
		if err != nil {
			return s, fmt.Errorf("service %s: provider: %w", rec.ID, err)
		}
		ep, known := a.endpoints[rec.Providers[text+":"+rec.Tenant].EpIDKey]
		p := drivers.ServiceProvider{Tenant: rec.Tenant, Local: known && ep.HomingHost == a.cfg.HostLabel}
		other, _ := optionalAddr(ep.IPv6Address) // complained about with the endpoint
		for _, addr := range []netip.Addr{own, other} {
			if addr.IsValid() {
				p.Addr = netip.AddrPortFrom(addr, 0)
				addrs = append(addrs, p)
			}
		}
	}
	for _, text := range rec.Ports {
		port, target, err := servicePort(text)
		if err != nil {
			return s, fmt.Errorf("service %s: %w", rec.ID, err)
		}
		for _, p := range addrs {
			p.Addr = netip.AddrPortFrom(p.Addr.Addr(), target)
			port.Providers = append(port.Providers, p)
		}
		s.Ports = append(s.Ports, port)
	}
	return s, nil
}

// servicePort reads SERVICEPORT:PROVIDERPORT:PROTOCOL.
func servicePort(text string) (port drivers.ServicePort, target uint16, err error) {
	own, target, name, ok := state.ServicePort(text)
	proto, known := map[string]uint8{"TCP": of.ProtoTCP, "UDP": of.ProtoUDP, "SCTP": of.ProtoSCTP}[name]
	if !ok || !known {
		return port, 0, fmt.Errorf("port %q: expected SERVICEPORT:PROVIDERPORT:PROTOCOL", text)
	}
	return drivers.ServicePort{Proto: proto, Port: own}, target, nil
}
