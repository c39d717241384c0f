package intent

import (
	"maps"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/service"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// serviceTables are the services, and the records and lists of providers for agents.
type serviceTables struct {
	*objects[contivmodel.ServiceLB, contivmodel.ServiceLBOper]
	ofTenant  *index[string, contivmodel.ServiceLB]
	ofNetwork *index[string, contivmodel.ServiceLB] // by the network's key

	records         *table[string, state.ServiceLB] // by service id
	recordsOfTenant *index[string, state.ServiceLB]
	providers       *table[string, state.ProviderList] // by service id
}

func registerServices(m *model) serviceTables {
	t := serviceTables{objects: register(m, contivmodel.ServiceLBKind(), lifecycle[contivmodel.ServiceLB, contivmodel.ServiceLBOper]{
		create: func(x *tx, s *contivmodel.ServiceLB) error { return putService(x, nil, s) },
		update: putService,
		remove: removeService,
		oper:   m.serviceOper,
	})}
	t.ofTenant = t.indexed(func(_ string, s *contivmodel.ServiceLB) string { return s.TenantName })
	t.ofNetwork = t.indexed(func(_ string, s *contivmodel.ServiceLB) string { return modelKey(s.TenantName, s.NetworkName) })
	t.records = records[state.ServiceLB](m, state.ServiceLBRoot)
	t.recordsOfTenant = t.records.indexed(func(_ string, s *state.ServiceLB) string { return s.Tenant })
	t.providers = records[state.ProviderList](m, state.ProviderRoot)
	return t
}

func ownerService(id string) string { return "service/" + id }

func serviceID(s *contivmodel.ServiceLB) string { return state.ServiceID(s.ServiceName, s.TenantName) }

// putService plans a service with its address and its providers; old is nil, or the service
// that it replaces. A service keeps its address unless another network or address is
// requested.
func putService(x *tx, old, s *contivmodel.ServiceLB) error {
	if err := needTenant(x, s.TenantName); err != nil {
		return err
	}
	netID := state.NetworkID(s.NetworkName, s.TenantName)
	space := x.spaces[netID]
	if _, ok := x.networks.get(modelKey(s.TenantName, s.NetworkName)); !ok || space == nil {
		return errs.New(errs.NotFound, "Network not found: %s", modelKey(s.TenantName, s.NetworkName))
	}
	id := serviceID(s)
	rec := &state.ServiceLB{
		ID: id, ServiceName: s.ServiceName, Tenant: s.TenantName, Network: s.NetworkName,
		Ports: s.Ports, Selectors: selectorMap(s), Providers: map[string]state.Provider{},
	}
	before, exists := x.services.records.get(id)
	stays := exists && before.Network == s.NetworkName
	if old != nil && stays && (s.IPAddress == "" || s.IPAddress == before.IPAddress) {
		rec.IPAddress = before.IPAddress
	} else {
		vip, err := pick4(x, space, "", s.IPAddress, freeOnly)
		if err != nil {
			return err
		}
		if exists {
			x.freeAddress(state.NetworkID(before.Network, before.Tenant), before.IPAddress, ownerService(id))
		}
		if err := x.claimAddress(netID, vip.String(), ownerService(id)); err != nil {
			return err
		}
		rec.IPAddress = vip.String()
	}
	if stays && before.IPv6Address != "" {
		rec.IPv6Address = before.IPv6Address
	} else if err := giveService6(x, space, before, rec); err != nil {
		return err
	}
	rec.Providers = x.providers(rec)
	x.services.put(x, s.Key, s)
	putServiceRecord(x, rec)
	return nil
}

// giveService6 plans the IPv6 address of a service whose network has such addresses,
// replacing that in before, which may be nil.
func giveService6(x *tx, space *ipam.Space, before, rec *state.ServiceLB) error {
	if before != nil && before.IPv6Address != "" {
		x.freeAddress(state.NetworkID(before.Network, before.Tenant), before.IPv6Address, ownerService(rec.ID))
	}
	if !space.Config().Subnet6.IsValid() {
		return nil
	}
	vip, err := pick6(x, space, "", freeOnly)
	if err != nil {
		return err
	}
	rec.IPv6Address = vip.String()
	return x.claimAddress(space.Config().Name, rec.IPv6Address, ownerService(rec.ID))
}

// selectorMap parses the selectors of a service, which have been checked.
func selectorMap(s *contivmodel.ServiceLB) map[string]string {
	m := make(map[string]string, len(s.Selectors))
	for _, text := range s.Selectors {
		if k, v, err := contivmodel.ParseSelector(text); err == nil {
			m[k] = v
		}
	}
	return m
}

// putServiceRecord plans a service's record and its provider list, if they have changed.
func putServiceRecord(x *tx, rec *state.ServiceLB) {
	if old, ok := x.services.records.get(rec.ID); !ok || !sameService(old, rec) {
		x.services.records.put(x, rec.ID, rec)
	}
	list := service.List(rec)
	old, ok := x.services.providers.get(rec.ID)
	if ok && !slices.Equal(old.Providers, list.Providers) || !ok && len(list.Providers) > 0 {
		x.services.providers.put(x, rec.ID, list)
	}
}

func sameService(a, b *state.ServiceLB) bool {
	return a.ServiceName == b.ServiceName && a.Tenant == b.Tenant && a.Network == b.Network && a.IPAddress == b.IPAddress && a.IPv6Address == b.IPv6Address &&
		slices.Equal(a.Ports, b.Ports) && maps.Equal(a.Selectors, b.Selectors) && maps.EqualFunc(a.Providers, b.Providers, service.Equal)
}

// removeService plans the removal of a service and everything it owns.
func removeService(x *tx, s *contivmodel.ServiceLB) error {
	id := serviceID(s)
	if rec, ok := x.services.records.get(id); ok {
		x.freeAddress(state.NetworkID(rec.Network, rec.Tenant), rec.IPAddress, ownerService(id))
		if rec.IPv6Address != "" {
			x.freeAddress(state.NetworkID(rec.Network, rec.Tenant), rec.IPv6Address, ownerService(id))
		}
		x.services.records.del(x, id)
	}
	if _, ok := x.services.providers.get(id); ok {
		x.services.providers.del(x, id)
	}
	return nil
}

// providers returns the endpoints of the tenant that a service selects by labels.
func (x *tx) providers(rec *state.ServiceLB) map[string]state.Provider {
	all := map[string]state.Provider{}
	for key := range x.networks.where(x.networks.ofTenant, rec.Tenant) {
		n, _ := x.networks.get(key)
		net, ok := x.networks.records.get(state.NetworkID(n.NetworkName, n.TenantName))
		if !ok {
			continue
		}
		for _, ep := range x.endpoints.where(x.endpoints.ofNetwork, net.ID) {
			if service.Matches(rec.Selectors, ep.Labels) {
				all[service.ProviderKey(ep, rec.Tenant)] = service.Provider(rec.ID, ep, net)
			}
		}
	}
	return all
}

// provide plans the changes of the tenant's services when an endpoint changes from before
// to after (nil: removed).
func provide(x *tx, before, after *state.Endpoint) {
	net, ok := x.networks.records.get(before.NetID)
	if !ok {
		return // so there is no tenant and no service in it
	}
	for _, rec := range maps.Collect(x.services.records.where(x.services.recordsOfTenant, net.Tenant)) {
		key := service.ProviderKey(before, net.Tenant)
		old, is := rec.Providers[key]
		upd := *rec
		upd.Providers = maps.Clone(rec.Providers)
		switch {
		case after != nil && service.Matches(rec.Selectors, after.Labels):
			if upd.Providers == nil {
				upd.Providers = map[string]state.Provider{}
			}
			upd.Providers[key] = service.Provider(rec.ID, after, net)
		case is && old.EpIDKey == before.ID:
			delete(upd.Providers, key)
		default:
			continue
		}
		putServiceRecord(x, &upd)
	}
}

// serviceOper lists the providers of a service, sorted by endpoint id.
func (m *model) serviceOper(s *contivmodel.ServiceLB, hosts vteps) (contivmodel.ServiceLBOper, error) {
	r, ok := m.services.records.base[serviceID(s)]
	if !ok {
		return contivmodel.ServiceLBOper{}, errs.New(errs.NotFound, "key not found: service %s", serviceID(s))
	}
	oper := contivmodel.ServiceLBOper{ServiceVip: r.v.IPAddress, NumProviders: len(r.v.Providers)}
	byID := make(map[string]state.Provider, len(r.v.Providers))
	for _, p := range r.v.Providers {
		byID[p.EpIDKey] = p
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if ep, ok := m.endpoints.base[id]; ok {
			shown := contivmodel.NewEndpointOper(ep.v, hosts[ep.v.HomingHost])
			shown.ServiceName = s.ServiceName
			oper.Providers = append(oper.Providers, shown)
		}
	}
	return oper, nil
}

// Services returns the records of all services, sorted by id.
func (e *Engine) Services(sees Sees) []*state.ServiceLB {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]*state.ServiceLB, 0, len(m.services.records.base))
	for _, id := range slices.Sorted(maps.Keys(m.services.records.base)) {
		if rec := m.services.records.base[id].v; sees.tenant(rec.Tenant) {
			all = append(all, rec)
		}
	}
	return all
}

// Service returns the record of one service, <service>:<tenant>.
func (e *Engine) Service(id string, sees Sees) (*state.ServiceLB, error) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	if r, ok := m.services.records.base[id]; ok && sees.tenant(r.v.Tenant) {
		return r.v, nil
	}
	return nil, errs.New(errs.NotFound, "service %s not found", id)
}

// wrongServices returns repairs of service records that do not match services and
// endpoints: the providers of a service are derived from the labels of endpoints.
func (l *loader) wrongServices() []step {
	m := l.model
	x := &tx{model: m}
	var steps []step
	for _, key := range slices.Sorted(maps.Keys(m.services.base)) {
		s := m.services.base[key].v
		id := serviceID(s)
		r, ok := m.services.records.base[id]
		log := l.log.WithField("service", id)
		if m.unreadable[state.ServiceLBRoot+id] != "" || m.unreadable[state.ProviderRoot+id] != "" {
			continue
		}
		if !ok {
			log.Error("a service has no record; writing one")
			steps = append(steps, func(x *tx) {
				again := *s
				if err := putService(x, nil, &again); err != nil {
					log.WithError(err).Error("cannot write the record of a service")
				}
			})
			continue
		}
		rec := *r.v
		rec.Ports, rec.Selectors = s.Ports, selectorMap(s)
		rec.Providers = x.providers(&rec)
		list, had := m.services.providers.base[id]
		right := !had && len(rec.Providers) == 0 || had && slices.Equal(list.v.Providers, service.List(&rec).Providers)
		if !sameService(r.v, &rec) || !right {
			log.Error("a service record does not match its endpoints; rewriting it")
			steps = append(steps, func(x *tx) { putServiceRecord(x, &rec) })
		}
	}
	// Records of deleted or unreadable services are left to operators.
	return steps
}
