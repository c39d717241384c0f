package dockplugin

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// lookupWithin limits how long a call waits for a network that has just been created to
// become known on this host.
const lookupWithin = 5 * time.Second

// lookup waits until find succeeds on the existing networks and groups. When time is over
// it returns an error of kind Unavailable if the store has not been read, or else notFound.
func (s *Server) lookup(ctx context.Context, find func(docknet.Topology) bool, notFound error) error {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	for {
		t, _, known, changed := s.cfg.Agent.Topology()
		if find(t) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !known {
				return errs.New(errs.Unavailable, "the agent on host %s has not read the store yet", s.cfg.HostLabel)
			}
			return notFound
		}
	}
}

// requestPool returns the subnet of a network. It reserves nothing and may be repeated.
func (s *Server) requestPool(ctx context.Context, req cnm.RequestPoolRequest) (cnm.RequestPoolResponse, error) {
	none := cnm.RequestPoolResponse{}
	var pool netip.Prefix
	if req.Pool != "" {
		p, err := netip.ParsePrefix(req.Pool)
		if err != nil {
			return none, errs.New(errs.Invalid, "subnet %q: expected ADDRESS/LENGTH", req.Pool)
		}
		pool = p.Masked()
	}
	v6 := req.V6 || pool.IsValid() && pool.Addr().Is6()
	ref, n, err := s.poolRef(ctx, req.Options)
	if err != nil {
		return none, err
	}
	if ref == (state.NetworkRef{}) {
		if !pool.IsValid() {
			return none, errs.New(errs.Invalid, "which subnet? Give --subnet, --ipam-opt contiv-tag=TAG, or --ipam-opt tenant=TENANT --ipam-opt network=NETWORK")
		}
		return cnm.RequestPoolResponse{PoolID: poolID{pool: pool}.String(), Pool: pool.String()}, nil
	}
	v4Subnet, v6Subnet := docknet.Subnets(n)
	subnet := v4Subnet.Prefix
	if v6 {
		subnet = v6Subnet.Prefix
	}
	switch {
	case !subnet.IsValid():
		return none, errs.New(errs.Invalid, "network %s has no IPv6 subnet: create it with --subnetv6", n.ID)
	case pool.IsValid() && pool != subnet:
		return none, errs.New(errs.Invalid, "subnet %s is not that of network %s: expected %s", pool, n.ID, subnet)
	}
	s.dir.notePool(subnet, ref)
	return cnm.RequestPoolResponse{PoolID: poolID{ownerOf(ref), subnet}.String(), Pool: subnet.String()}, nil
}

// poolRef returns the network named in the options of an IPAM driver; zero if they name
// none.
func (s *Server) poolRef(ctx context.Context, options map[string]string) (ref state.NetworkRef, n state.Network, err error) {
	tag := options[docknet.OptionTag]
	named, isNamed := docknet.OfOptions(options)
	if tag == "" && !isNamed {
		return state.NetworkRef{}, n, nil
	}
	notFound := errs.New(errs.NotFound, "failed to lookup tag. No group and no network has the tag %q", tag)
	if isNamed {
		notFound = errs.New(errs.NotFound, "network not found: %s", docknet.Key(named))
	}
	err = s.lookup(ctx, func(t docknet.Topology) bool {
		found := true
		if isNamed {
			ref = named
		} else if ref, found = t.Tagged(tag); !found {
			return false
		}
		n, found = t.Network(ref.NetworkID())
		return found && t.Has(ref)
	}, notFound)
	return ref, n, err
}

// requestAddress hands out an address: a gateway from the network's record, any other from
// netmaster, which reserves it.
func (s *Server) requestAddress(ctx context.Context, req cnm.RequestAddressRequest) (any, error) {
	var none any
	id, err := parsePoolID(req.PoolID)
	if err != nil {
		return none, err
	}
	var want netip.Addr
	if req.Address != "" {
		if want, err = netip.ParseAddr(req.Address); err != nil || want.Is6() != id.pool.Addr().Is6() {
			return none, errs.New(errs.Invalid, "address %q: expected one of %s", req.Address, id.pool)
		}
	}
	if req.Options[cnm.OptionAddressType] == cnm.AddressTypeGateway {
		return s.gateway(ctx, id, want)
	}
	if s.cfg.Swarm && want.IsValid() && req.Options[cnm.OptionSerial] == "" {
		s.given.borrow(id.owner, want)
		return cnm.RequestAddressResponse{Address: netip.PrefixFrom(want, id.pool.Bits()).String()}, nil
	}
	alloc := masterapi.AllocAddressRequest{NetworkID: id.owner, AddressPool: s.addressPool(id), Held: s.cfg.Swarm}
	if want.IsValid() {
		if !id.pool.Contains(want) {
			return none, errs.New(errs.Invalid, "requested address is out of range: %s is not in %s", want, id.pool)
		}
		alloc.PreferredIPv4Address = want.String()
	}
	if !s.cfg.Swarm {
		alloc.Reservation = s.cfg.HostLabel + "/" + rand.Text()
	}
	if !s.given.isOut(id.owner, want) {
		// Unknown reservations of this host are its own: a reply was lost, or an
		// address was released while netmaster was down.
		alloc.Host = s.cfg.HostLabel
	}
	// The result must be known even if the Engine gives up in the meantime.
	outlast, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	resp, err := s.cfg.Master.AllocAddress(outlast, alloc)
	if err != nil {
		return none, fmt.Errorf("address of %s: %w", req.PoolID, err)
	}
	if p, err := netip.ParsePrefix(resp.IPv4Address); err == nil && !s.cfg.Swarm {
		s.given.handOut(id.owner, p.Addr(), alloc.Reservation)
	}
	host, _, _ := strings.Cut(resp.IPv4Address, "/")
	return undeliverable{cnm.RequestAddressResponse{Address: resp.IPv4Address}, func(ctx context.Context) error {
		_, err := s.releaseAddress(ctx, cnm.ReleaseAddressRequest{PoolID: req.PoolID, Address: host})
		return err
	}}, nil
}

// gateway returns the gateway's address. Engines before 28 require one: if there is none,
// the network's own address is returned.
func (s *Server) gateway(ctx context.Context, id poolID, want netip.Addr) (cnm.RequestAddressResponse, error) {
	none := cnm.RequestAddressResponse{}
	var gw netip.Addr
	err := s.lookup(ctx, func(t docknet.Topology) bool {
		n, ok := id.network(t)
		if ok {
			gw = id.gateway(n)
		}
		return ok
	}, errs.New(errs.NotFound, "network not found: %s", id))
	switch {
	case err != nil && s.cfg.Swarm && errs.Is(err, errs.NotFound):
		// The network is created after its gateway.
		if gw = want; !gw.IsValid() {
			gw = id.pool.Addr().Next()
		}
	case err != nil:
		return none, err
	case want.IsValid() && gw.IsValid() && want != gw:
		return none, errs.New(errs.Invalid, "gateway %s is not that of %s: expected %s, or no --gateway", want, id, gw)
	case want.IsValid() && !gw.IsValid():
		gw = want
	case !gw.IsValid():
		gw = id.pool.Addr()
	}
	return cnm.RequestAddressResponse{Address: netip.PrefixFrom(gw, id.pool.Bits()).String()}, nil
}

// releaseAddress releases an address. That of an endpoint was freed with the endpoint, and
// may belong to another one by now.
func (s *Server) releaseAddress(ctx context.Context, req cnm.ReleaseAddressRequest) (cnm.Empty, error) {
	id, err := parsePoolID(req.PoolID)
	if err != nil {
		return cnm.Empty{}, err
	}
	a, err := netip.ParseAddr(req.Address)
	if err != nil {
		return cnm.Empty{}, errs.New(errs.Invalid, "address %q: expected one of %s", req.Address, id.pool)
	}
	given := s.given.giveBack(id.owner, a)
	if given.went {
		return cnm.Empty{}, nil
	}
	short, cancel := s.endpoints.Share(ctx)
	defer cancel()
	release := masterapi.ReleaseAddressRequest{NetworkID: id.owner + "|" + s.addressPool(id), IPv4Address: a.String(), Reservation: given.reservation}
	if !s.cfg.Swarm {
		release.Host = s.cfg.HostLabel
	}
	err = s.cfg.Master.ReleaseAddress(short, release)
	if errs.Is(err, errs.NotFound) {
		err = nil
	}
	if errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Timeout) {
		// netmaster takes back reservations that nobody uses, and it must be possible
		// to remove a container while netmaster is down.
		s.cfg.Log.WithError(err).WithField("address", req.Address).Warn("cannot tell netmaster that an address is released; netmaster releases it later by itself")
		err = nil
	}
	return cnm.Empty{}, err
}
