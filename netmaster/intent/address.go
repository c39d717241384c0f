package intent

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// modeSwarm is the cluster mode in which docker asks for a gateway before the network
// exists.
const modeSwarm = "swarm-mode"

// AllocAddress hands out an address before its endpoint exists, and reserves it until
// CreateEndpoint takes it over or ReleaseAddress releases it. One held by the manager of a
// swarm stays until ReleaseAddress.
func (e *Engine) AllocAddress(ctx context.Context, req masterapi.AllocAddressRequest) (masterapi.AllocAddressResponse, error) {
	none := masterapi.AllocAddressResponse{}
	if err := e.checkReserver(ctx, req.Host); err != nil {
		return none, err
	}
	pool, err := parsePool(req.AddressPool)
	if err != nil {
		return none, err
	}
	return submit[masterapi.AllocAddressResponse](ctx, e.writer, false, func(x *tx) (reply, error) {
		answer := func(a netip.Addr, bits int) reply {
			return func(int64) any {
				return masterapi.AllocAddressResponse{NetworkID: req.NetworkID, IPv4Address: netip.PrefixFrom(a, bits).String()}
			}
		}
		s, owner, ok := findSpace(x, req.NetworkID, pool)
		if !ok {
			if e.cfg.ClusterMode != modeSwarm || !pool.prefix.IsValid() {
				return nil, errs.New(errs.NotFound, "network not found: %q, pool %q", req.NetworkID, req.AddressPool)
			}
			first := pool.prefix.Addr()
			if first.Is4() {
				first = first.Next()
			}
			return answer(first, pool.prefix.Bits()), nil
		}
		host, _, _ := strings.Cut(req.PreferredIPv4Address, "/")
		want, _ := parseAddr(host)
		if req.Held && x.hold(claimKey{s.Config().Name, want.String()}) {
			return answer(want, bitsOf(s, want)), nil
		}
		if a, ok := x.reservedAs(req.Reservation, s.Config().Name, want); ok {
			return answer(a, bitsOf(s, a)), nil // repeated request: the reply was lost
		}
		reserver := ownerReserved + req.NetworkID
		if req.Host != "" {
			reserver += reservedOn + req.Host
		}
		again := claimKey{s.Config().Name, want.String()}
		if claim, ok := x.addrs.get(again); ok && req.Host != "" && claim.Owner == reserver {
			if claim.Reservation != req.Reservation {
				x.addrs.put(x, again, &state.AddressClaim{Owner: claim.Owner, Held: claim.Held, Reservation: req.Reservation})
			}
			return answer(want, bitsOf(s, want)), nil
		}
		var a netip.Addr
		if v6 := want.Is6() || !want.IsValid() && pool.prefix.IsValid() && pool.prefix.Addr().Is6(); v6 {
			a, err = pick6(x, s, req.PreferredIPv4Address, freeOnly)
		} else {
			a, err = pick4(x, s, owner, req.PreferredIPv4Address, freeOnly)
		}
		if err != nil {
			return nil, err
		}
		err = x.reserveAddress(s.Config().Name, a.String(), reserver, req.Reservation)
		if req.Held {
			x.hold(claimKey{s.Config().Name, a.String()})
		}
		return answer(a, bitsOf(s, a)), err
	})
}

// bitsOf is the prefix length of the subnet that contains an address of a network.
func bitsOf(s *ipam.Space, a netip.Addr) int {
	if a.Is6() {
		return s.Config().Subnet6.Bits()
	}
	return s.Config().Subnet.Prefix.Bits()
}

// ReleaseAddress releases an address from AllocAddress. It changes nothing, without an
// error, if the address is free, belongs to an endpoint, or is a gateway; an endpoint's
// address that is also held is then freed with the endpoint. Nor does it change an address
// that another client has reserved since: see endReservation.
func (e *Engine) ReleaseAddress(ctx context.Context, req masterapi.ReleaseAddressRequest) error {
	if err := e.checkReserver(ctx, req.Host); err != nil {
		return err
	}
	id, poolText, _ := strings.Cut(req.NetworkID, "|")
	pool, err := parsePool(poolText)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(req.IPv4Address, "/")
	a, ok := parseAddr(host)
	if !ok && !req.Held {
		return errs.New(errs.Invalid, "IPv4Address %q is no IP address", req.IPv4Address)
	}
	_, err = submit[struct{}](ctx, e.writer, false, func(x *tx) (reply, error) {
		if s, _, ok := findSpace(x, id, pool); ok {
			net := s.Config().Name
			if req.Held {
				x.unhold(net, req.Gone)
			} else {
				x.endReservation(claimKey{net, a.String()}, req.Host, req.Reservation)
			}
		}
		return func(int64) any { return struct{}{} }, nil
	})
	return err
}

// addressPool is the subnet by which docker identifies a network: ADDRESS/LENGTH[:TENANT].
type addressPool struct {
	prefix netip.Prefix
	tenant string
}

// parsePool parses an address pool; the empty text is the zero pool.
func parsePool(s string) (addressPool, error) {
	if s == "" {
		return addressPool{}, nil
	}
	slash := strings.LastIndexByte(s, '/')
	if slash < 0 {
		return addressPool{}, errs.New(errs.Invalid, "AddressPool %q is no subnet: expected ADDRESS/LENGTH", s)
	}
	length, tenant, _ := strings.Cut(s[slash+1:], ":")
	a, ok := parseAddr(s[:slash])
	n, err := strconv.Atoi(length)
	p := netip.PrefixFrom(a, n)
	if !ok || err != nil || !p.IsValid() {
		return addressPool{}, errs.New(errs.Invalid, "AddressPool %q is no subnet: expected ADDRESS/LENGTH", s)
	}
	return addressPool{prefix: p.Masked(), tenant: tenant}, nil
}

// findSpace finds the address space for a request: that of network <net>.<tenant>, of group
// <net>:<group>.<tenant> (whose pool has the returned owner), or, without an id, of the
// network with the pool as its subnet. If several tenants have such a network, the one
// whose id comes first is used.
func findSpace(x *tx, id string, pool addressPool) (s *ipam.Space, owner string, ok bool) {
	if id == "" {
		return spaceOfPool(x, pool)
	}
	net, rest, isGroup := strings.Cut(id, ":")
	if !isGroup {
		s, ok = x.spaces[id]
		return s, "", ok
	}
	// Names may contain dots: use the split for which network and group exist.
	for i := range len(rest) {
		if rest[i] != '.' {
			continue
		}
		group, tenant := rest[:i], rest[i+1:]
		g, found := x.groups.get(modelKey(tenant, group))
		if found && g.NetworkName == net {
			s, ok = x.spaces[state.NetworkID(net, tenant)]
			return s, ownerGroup(state.GroupID(group, tenant)), ok
		}
	}
	return nil, "", false
}

func spaceOfPool(x *tx, pool addressPool) (s *ipam.Space, owner string, ok bool) {
	var ids []string
	for id, s := range x.spaces {
		cfg := s.Config()
		if !pool.prefix.IsValid() || pool.prefix != cfg.Subnet.Prefix && pool.prefix != cfg.Subnet6 {
			continue
		}
		if rec, ok := x.networks.records.get(id); ok && (pool.tenant == "" || pool.tenant == rec.Tenant) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, "", false
	}
	return x.spaces[slices.Min(ids)], "", true
}

// spaceConfig returns a network's addressing from its record.
func spaceConfig(rec *state.Network) (ipam.Config, error) {
	cfg := ipam.Config{Name: rec.ID}
	r, ok := contivmodel.ParseRange(rec.IPAddrRange)
	a, fine := contivmodel.ParseIP4(rec.SubnetIP)
	if !ok || !fine || rec.SubnetLen < 8 || rec.SubnetLen > 31 {
		return cfg, errs.New(errs.Invalid, "subnet %s/%d with range %q is not valid", rec.SubnetIP, rec.SubnetLen, rec.IPAddrRange)
	}
	cfg.Subnet = contivmodel.Subnet{Prefix: netip.PrefixFrom(a, int(rec.SubnetLen)).Masked(), Range: r}
	if !cfg.Subnet.Prefix.Contains(r.First) || !cfg.Subnet.Prefix.Contains(r.Last) {
		return cfg, errs.New(errs.Invalid, "range %s leaves subnet %s", r, cfg.Subnet.Prefix)
	}
	if rec.IPv6Subnet != "" {
		p, ok := contivmodel.ParseCIDR6(rec.IPv6Subnet + "/" + strconv.Itoa(int(rec.IPv6Len)))
		if !ok {
			return cfg, errs.New(errs.Invalid, "IPv6 subnet %s/%d is not valid", rec.IPv6Subnet, rec.IPv6Len)
		}
		cfg.Subnet6 = p
	}
	return cfg, nil
}
