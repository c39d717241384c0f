package intent

import (
	"context"
	"maps"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// endpointTables are the endpoints.
type endpointTables struct {
	*table[string, state.Endpoint]                                // by id
	ofNetwork                      *index[string, state.Endpoint] // by network id
	ofGroup                        *index[string, state.Endpoint] // by group id
	ofHost                         *index[string, state.Endpoint] // by the host's label
	ofMAC                          *index[string, state.Endpoint] // by macKey, those that are not derived from an address
	ofContainer                    *index[string, state.Endpoint] // by container id
}

func newEndpoints(m *model) endpointTables {
	t := endpointTables{table: records[state.Endpoint](m, state.EndpointRoot)}
	t.ofNetwork = t.indexed(func(_ string, e *state.Endpoint) string { return e.NetID })
	t.ofGroup = t.indexed(func(_ string, e *state.Endpoint) string { return e.EndpointGroupKey })
	t.ofHost = t.indexed(func(_ string, e *state.Endpoint) string { return e.HomingHost })
	t.ofMAC = t.indexedEach(func(_ string, e *state.Endpoint) []string {
		if derived(e.MacAddress) {
			return nil
		}
		return []string{macKey(e.NetID, e.MacAddress)}
	})
	t.ofContainer = t.indexedEach(func(_ string, e *state.Endpoint) []string {
		if e.ContainerID == "" {
			return nil
		}
		return []string{e.ContainerID}
	})
	t.compact = func(id string, e *state.Endpoint) {
		ownKey(id, &e.ID)
		if strings.HasSuffix(id, e.EndpointID) {
			e.EndpointID = id[len(id)-len(e.EndpointID):]
		}
		ownKey(e.EndpointID, &e.ContainerID)
		m.texts.share(&e.NetID, &e.ServiceName, &e.EndpointGroupKey, &e.HomingHost, &e.IntfName, &e.VtepIP)
	}
	return t
}

// defaultACIGroup is the default group of endpoints in ACI mode.
const defaultACIGroup = "default-group"

// maxIDPart limits the length of parts of an endpoint's id.
const maxIDPart = 256

// EndpointChange is an endpoint's record and the store revision from which it, or its
// removal, is visible.
type EndpointChange struct {
	Endpoint state.Endpoint
	Revision int64
}

// CreateEndpoint creates an endpoint for a container in a network, with an IPv4 address
// and, if the network has an IPv6 subnet, an IPv6 address: the requested ones, or from the
// group's pool, or from the network. An existing endpoint is returned unchanged.
func (e *Engine) CreateEndpoint(ctx context.Context, req masterapi.CreateEndpointRequest) (EndpointChange, error) {
	netID := state.NetworkID(req.NetworkName, req.TenantName)
	id, err := endpointID(netID, req.ConfigEP)
	if err != nil {
		return EndpointChange{}, err
	}
	if err := checkHost(ctx, "create", id, req.ConfigEP.Host); err != nil {
		return EndpointChange{}, err
	}
	return submit[EndpointChange](ctx, e.writer, false, func(x *tx) (reply, error) {
		var err error
		ep, ok := x.endpoints.get(id)
		switch {
		case !ok:
			if ep, err = newEndpoint(x, id, netID, req); err != nil {
				return nil, err
			}
		case req.ConfigEP.Container != "" && (ep.NetID != netID || ep.EndpointID != req.ConfigEP.Container):
			return nil, errs.New(errs.Conflict, "endpoint id %s is taken by endpoint %s of network %s", id, ep.EndpointID, ep.NetID)
		}
		if err := checkHost(ctx, "read", id, ep.HomingHost); err != nil {
			return nil, err
		}
		return func(rev int64) any {
			if r, ok := x.endpoints.base[id]; ok && r.v == ep {
				rev = r.rev
			}
			return EndpointChange{Endpoint: *ep, Revision: rev}
		}, nil
	})
}

// endpointID is the network's id and the container's, or for a host's own endpoint the
// host's label and a fixed suffix.
func endpointID(netID string, ep masterapi.ConfigEP) (string, error) {
	for _, part := range []struct{ field, text string }{{"Container", ep.Container}, {"Host", ep.Host}} {
		if len(part.text) > maxIDPart || strings.ContainsFunc(part.text, func(r rune) bool { return r <= ' ' || r == '/' || r > '~' }) {
			return "", errs.New(errs.Invalid, "ConfigEP.%s %.40q is no id: expected up to %d printable ASCII characters without slash", part.field, part.text, maxIDPart)
		}
	}
	if ep.Container != "" {
		return state.EndpointID(netID, ep.Container), nil
	}
	if ep.Host == "" {
		return "", errs.New(errs.Invalid, "ConfigEP names neither Container nor Host")
	}
	return ep.Host + "-native-intf", nil
}

// newEndpoint plans an endpoint with its addresses.
func newEndpoint(x *tx, id, netID string, req masterapi.CreateEndpointRequest) (*state.Endpoint, error) {
	net, ok := x.networks.records.get(netID)
	space := x.spaces[netID]
	if !ok || space == nil {
		if _, known := x.tenants.get(req.TenantName); !known && req.TenantName != "" {
			return nil, errs.New(errs.NotFound, "key not found: network %s: %s", netID, masterapi.NoTenant(req.TenantName))
		}
		return nil, errs.New(errs.NotFound, "key not found: network %s", netID)
	}
	ep := &state.Endpoint{
		ID: id, NetID: netID, EndpointID: req.ConfigEP.Container, ServiceName: req.ConfigEP.ServiceName,
		HomingHost: req.ConfigEP.Host, EPCommonName: req.EPCommonName,
	}
	if ep.ServiceName == "" && inACI(x) {
		ep.ServiceName = defaultACIGroup
	}
	pool := ""
	if ep.ServiceName != "" && net.NwType == state.NetworkData {
		gid := state.GroupID(ep.ServiceName, req.TenantName)
		g, ok := x.groups.records.get(gid)
		switch {
		case !ok:
			return nil, errs.New(errs.NotFound, "key not found: endpoint group %s", gid)
		case g.NetworkName != net.NetworkName:
			return nil, errs.New(errs.Invalid, "endpoint group %s belongs to network %s, not %s", gid, g.NetworkName, net.NetworkName)
		}
		ep.EndpointGroupID, ep.EndpointGroupKey = g.EndpointGroupID, gid
		pool = ownerGroup(gid)
	}
	v4, err := pick4(x, space, pool, req.ConfigEP.IPAddress, reservedToo)
	if err != nil {
		return nil, err
	}
	ep.IPAddress = bindAddress(x, net.ID, v4, id)
	if ep.MacAddress, err = macFor(x, netID, v4, req.ConfigEP.MacAddress); err != nil {
		return nil, err
	}
	if space.Config().Subnet6.IsValid() || req.ConfigEP.IPv6Address != "" {
		v6, err := pick6(x, space, req.ConfigEP.IPv6Address, reservedToo)
		if err != nil {
			return nil, err
		}
		ep.IPv6Address = bindAddress(x, net.ID, v6, id)
	}
	x.endpoints.put(x, id, ep)
	return ep, nil
}

// bindAddress assigns an address from pick4 or pick6 to an endpoint, taking over a
// reservation if there is one, and returns its text.
func bindAddress(x *tx, net string, addr netip.Addr, endpoint string) string {
	if s := x.spaces[net]; s.Take(addr) {
		x.onUndo(func() { s.Free(addr) })
	}
	k := claimKey{net, addr.String()}
	claim := &state.AddressClaim{Owner: ownerEndpoint(endpoint)}
	if before, ok := x.addrs.get(k); ok {
		claim.Held, claim.Reservation = before.Held, before.Reservation
		claim.ReservedBy, claim.Unreleased = releaser(before)
	}
	x.addrs.put(x, k, claim)
	return k.what
}

// DeleteEndpoint removes an endpoint and frees its addresses. Its network or group may be
// gone.
func (e *Engine) DeleteEndpoint(ctx context.Context, req masterapi.DeleteEndpointRequest) (EndpointChange, error) {
	return e.deleteEndpoint(ctx, state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.EndpointID))
}

// deleteEndpoint is DeleteEndpoint by the id of the record.
func (e *Engine) deleteEndpoint(ctx context.Context, id string) (EndpointChange, error) {
	return submit[EndpointChange](ctx, e.writer, false, func(x *tx) (reply, error) {
		ep, ok := x.endpoints.get(id)
		if !ok {
			return nil, errs.New(errs.NotFound, "key not found: endpoint %s", id)
		}
		if err := checkHost(ctx, "delete", id, ep.HomingHost); err != nil {
			return nil, err
		}
		x.endpoints.del(x, id)
		provide(x, ep, nil)
		for _, addr := range []string{ep.IPAddress, ep.IPv6Address} {
			if addr != "" {
				x.leaveAddress(ep.NetID, addr, ownerEndpoint(id))
			}
		}
		return func(rev int64) any { return EndpointChange{Endpoint: *ep, Revision: rev} }, nil
	})
}

// UpdateEndpoint records what a container runtime reports about the container of an
// endpoint. At its start: labels, which are added to existing ones, container id and name;
// the container then provides the services that select its labels. When it has died, its
// labels are removed, and with them its role in services. Other events, and containers
// without endpoint, change nothing; known says whether there is an endpoint.
func (e *Engine) UpdateEndpoint(ctx context.Context, req masterapi.UpdateEndpointRequest) (known bool, err error) {
	if req.Event != "start" && req.Event != "die" {
		return true, nil
	}
	return submit[bool](ctx, e.writer, false, func(x *tx) (reply, error) {
		eps := endpointsOfEvent(x, req)
		for _, ep := range eps {
			if err := checkHost(ctx, "change", ep.ID, ep.HomingHost); err != nil {
				return nil, err
			}
			upd := afterEvent(*ep, req)
			if upd.ContainerID != ep.ContainerID || upd.EPCommonName != ep.EPCommonName || !maps.Equal(upd.Labels, ep.Labels) {
				x.endpoints.put(x, ep.ID, &upd)
				provide(x, ep, &upd)
			}
		}
		return func(int64) any { return len(eps) > 0 }, nil
	})
}

// afterEvent is an endpoint as changed by an event.
func afterEvent(ep state.Endpoint, req masterapi.UpdateEndpointRequest) state.Endpoint {
	if req.Event == "die" {
		ep.Labels = nil
		return ep
	}
	labels := maps.Clone(ep.Labels)
	if labels == nil && len(req.Labels) > 0 {
		labels = map[string]string{}
	}
	maps.Copy(labels, req.Labels)
	ep.Labels = labels
	if req.ContainerID != "" {
		ep.ContainerID = req.ContainerID
	}
	if req.EPCommonName != "" {
		ep.EPCommonName = req.EPCommonName
	}
	return ep
}

// endpointsOfEvent finds the endpoints of an event: the one endpoint that a start names;
// all endpoints of a container that has died, because such an event contains only its id.
func endpointsOfEvent(x *tx, req masterapi.UpdateEndpointRequest) []*state.Endpoint {
	var eps []*state.Endpoint
	if req.Event == "start" {
		if ep := endpointOfContainer(x, req); ep != nil {
			eps = append(eps, ep)
		}
	} else if req.ContainerID != "" {
		for _, ep := range x.endpoints.where(x.endpoints.ofContainer, req.ContainerID) {
			eps = append(eps, ep)
		}
	}
	return eps
}

// endpointOfContainer finds the endpoint of an event, whose Network is the name of a
// network or of a group in it.
func endpointOfContainer(x *tx, req masterapi.UpdateEndpointRequest) *state.Endpoint {
	network := req.Network
	if g, ok := x.groups.get(modelKey(req.Tenant, req.Network)); ok {
		network = g.NetworkName
	}
	ep, _ := x.endpoints.get(state.EndpointID(state.NetworkID(network, req.Tenant), req.EndpointID))
	return ep
}

// Which claimed addresses may be requested.
const (
	freeOnly    = false
	reservedToo = true // also those handed out by allocAddress
)

// pick4 returns the requested IPv4 address, or the lowest free one: of owner's pool, or of
// the network if owner has none.
func pick4(x *tx, s *ipam.Space, owner, want string, takeOver bool) (netip.Addr, error) {
	if want == "" {
		return s.Next4(owner)
	}
	a, err := wanted(x, s, want, takeOver)
	if err != nil {
		return a, err
	}
	if !a.Is4() {
		return a, errs.New(errs.Invalid, "%s is no IPv4 address", want)
	}
	p, inside := s.PoolOf(a)
	switch {
	case inside && p.Owner != owner:
		return a, errs.New(errs.Conflict, "Address already in use: %s is in the pool %s of %s", a, p.Range, p.Owner)
	case !inside && s.HasPool(owner):
		return a, errs.New(errs.Invalid, "requested address is out of range: %s is not in the pool of %s", a, owner)
	}
	return a, nil
}

// pick6 returns the requested IPv6 address, or the next free one.
func pick6(x *tx, s *ipam.Space, want string, takeOver bool) (netip.Addr, error) {
	if want != "" {
		a, err := wanted(x, s, want, takeOver)
		if err == nil && !a.Is6() {
			err = errs.New(errs.Invalid, "%s is no IPv6 address", want)
		}
		return a, err
	}
	a, err := s.Next6()
	if err != nil {
		return a, err
	}
	last := s.Last6()
	s.SetLast6(a)
	x.onUndo(func() { s.SetLast6(last) })
	return a, nil
}

// wanted checks a requested address, written with or without a length.
func wanted(x *tx, s *ipam.Space, text string, takeOver bool) (netip.Addr, error) {
	host, _, _ := strings.Cut(text, "/")
	a, ok := parseAddr(host)
	if !ok {
		return a, errs.New(errs.Invalid, "%q is no IP address", text)
	}
	if claim, ok := x.addrs.get(claimKey{s.Config().Name, a.String()}); ok {
		if takeOver && strings.HasPrefix(claim.Owner, ownerReserved) {
			return a, nil
		}
		return a, errs.New(errs.Conflict, "Address already in use: %s of network %s belongs to %s", a, s.Config().Name, claim.Owner)
	}
	return a, s.Check(a)
}

// InspectEndpoint finds the endpoint for a search text: one whose endpoint id, container id
// or name equals the text, or else begins with it, or else contains it.
func (e *Engine) InspectEndpoint(ctx context.Context, search string, sees Sees) (*contivmodel.EndpointInspection, error) {
	ep := e.findEndpoint(search, sees)
	if ep == nil {
		return nil, errs.New(errs.NotFound, "%s not found", contivmodel.EndpointType)
	}
	hosts, err := e.vteps(ctx)
	if err != nil {
		return nil, err
	}
	oper := contivmodel.NewEndpointOper(ep, hosts[ep.HomingHost])
	oper.Key = search
	if oper.VirtualPort, err = e.virtualPort(ctx, ep.ID); err != nil {
		return nil, err
	}
	return &contivmodel.EndpointInspection{Oper: oper}, nil
}

// findEndpoint prefers the lowest id among visible endpoints that match equally well.
func (e *Engine) findEndpoint(search string, sees Sees) *state.Endpoint {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	var best *state.Endpoint
	bestRank := noMatch
	for _, r := range m.endpoints.base {
		rank := noMatch
		for _, text := range []string{r.v.ID, r.v.EndpointID, r.v.ContainerID, r.v.EPCommonName} {
			rank = min(rank, match(text, search))
		}
		better := rank < bestRank || rank == bestRank && best != nil && r.v.ID < best.ID
		if better && sees.tenant(m.tenantOf(r.v)) {
			best, bestRank = r.v, rank
		}
	}
	return best
}

const noMatch = 3

// match rates how well text matches: 0 exactly, 1 at the beginning, 2 anywhere.
func match(text, search string) int {
	switch {
	case text == "" || search == "":
		return noMatch
	case text == search:
		return 0
	case strings.HasPrefix(text, search):
		return 1
	case strings.Contains(text, search):
		return 2
	}
	return noMatch
}
