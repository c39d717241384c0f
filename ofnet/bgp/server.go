package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	gobgp "github.com/osrg/gobgp/v4/pkg/server"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/retry"
)

// Times of a session, in seconds.
const (
	connectRetry = 5
	holdTime     = 90 // RFC 4271 section 10
	keepalive    = 30
	// restartTime is how long neighbors keep this host's routes while it is unreachable.
	restartTime = 120
	// deferralTime is how long the library delays its first announcements to wait for
	// routes of other neighbors; see server.tell.
	deferralTime = 1
)

// maxTTL is the TTL of packets that have not passed a router.
const maxTTL = 255

var families = map[bgp.Family]*api.Family{
	bgp.RF_IPv4_UC: {Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST},
	bgp.RF_IPv6_UC: {Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST},
}

// server is a running speaker of one Config; only its neighbors can change.
type server struct {
	cfg   Config
	log   logrus.FieldLogger
	gobgp *gobgp.BgpServer
	peers *delta.Map[netip.Addr, Neighbor]
	paths *delta.Map[netip.Addr, struct{}]
	end   context.CancelFunc // of the watch

	mu    sync.Mutex
	heard map[netip.Addr]map[bgp.Family]bool // families of neighbors: received completely?
	fresh map[netip.Addr]bool                // neighbors whose session has just been established
}

func startServer(ctx context.Context, cfg Config, log logrus.FieldLogger, wake func()) (*server, error) {
	s := &server{
		cfg: cfg, log: log, gobgp: gobgp.NewBgpServer(gobgp.LoggerOption(slog.New(handler{log}), nil)),
		peers: delta.NewComparable[netip.Addr, Neighbor](), paths: delta.NewComparable[netip.Addr, struct{}](),
		heard: map[netip.Addr]map[bgp.Family]bool{}, fresh: map[netip.Addr]bool{},
	}
	go s.gobgp.Serve() // until stop, which waits for it
	listen := []string{cfg.Router.Addr().String()}
	if cfg.Router6.IsValid() {
		listen = append(listen, cfg.Router6.Addr().String())
	}
	err := s.gobgp.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn: cfg.AS, RouterId: cfg.Router.Addr().String(), ListenPort: int32(cfg.Port), ListenAddresses: listen,
		UseMultiplePaths: true,
	}})
	if err == nil {
		err = s.exportOwnOnly(ctx)
	}
	if err != nil {
		s.stop(false)
		return nil, err
	}
	watch, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	err = s.gobgp.WatchEvent(watch, gobgp.WatchEventMessageCallbacks{
		OnBestPath:   func([]*apiutil.Path, time.Time) { wake() },
		OnPathEor:    func(p *apiutil.Path, _ time.Time) { s.hear(p.PeerAddress, p.Family); wake() },
		OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) { s.peerEvent(e.Peer); wake() },
	}, gobgp.WatchBestPath(false), gobgp.WatchEor(false), gobgp.WatchPeer())
	if err != nil {
		s.stop(false)
		return nil, err
	}
	log.WithFields(logrus.Fields{"router": cfg.Router.Addr(), "as": cfg.AS}).Info("BGP speaker started")
	return s, nil
}

// withdrawTime is how long neighbors have to take withdrawn routes in.
const withdrawTime = 200 * time.Millisecond

// withdraw withdraws everything before the sessions end for good. A notification alone is not
// enough: if this end closes with something unread, the connection is reset, and neighbors may
// see that first. They would take it for a restart and keep the routes for restartTime.
func (s *server) withdraw(ctx context.Context) {
	if err := s.setPaths(nil); err != nil {
		s.log.WithError(err).Warn("cannot withdraw the host's routes; neighbors may keep them for a while")
	}
	retry.Pause(ctx, withdrawTime)
}

// stop ends all sessions. Gracefully means without a notification, so that neighbors that
// support graceful restart keep the routes until the next speaker connects.
func (s *server) stop(gracefully bool) {
	if s.end != nil {
		s.end()
	}
	// It fails only when there is nothing to stop.
	_ = s.gobgp.StopBgp(context.Background(), &api.StopBgpRequest{AllowGracefulRestart: gracefully})
}

// exportOwnOnly keeps routes learned from one neighbor from being sent to others.
func (s *server) exportOwnOnly(ctx context.Context) error {
	own := &api.Policy{Name: "own", Statements: []*api.Statement{{
		Name: "own", Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
	}}}
	if err := s.gobgp.AddPolicy(ctx, &api.AddPolicyRequest{Policy: own}); err != nil {
		return fmt.Errorf("add the export policy: %w", err)
	}
	err := s.gobgp.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT, Policies: []*api.Policy{own},
		DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
	}})
	if err != nil {
		return fmt.Errorf("set the export policy: %w", err)
	}
	return nil
}

// setPaths announces and withdraws addresses. An address is not announced if the host has
// no address of the same family, as it would have no next hop.
func (s *server) setPaths(addrs map[netip.Addr]struct{}) error {
	wanted := map[netip.Addr]struct{}{}
	for a := range addrs {
		if a.Is4() || s.cfg.Router6.IsValid() {
			wanted[a] = struct{}{}
		}
	}
	s.paths.ReplaceDesired(wanted)
	for c := range s.paths.Pending() {
		path, err := s.path(c.Key)
		if err != nil {
			return fmt.Errorf("announce %s: %w", c.Key, err)
		}
		if c.Op == delta.Remove {
			err = s.gobgp.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{path}})
		} else {
			_, err = s.gobgp.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{path}})
		}
		if err != nil {
			return fmt.Errorf("%s the path to %s: %w", c.Op, c.Key, err)
		}
		s.paths.Applied(c)
	}
	return nil
}

const originEGP = 1 // as in all earlier versions (RFC 4271 section 5.1.1)

func (s *server) path(a netip.Addr) (*apiutil.Path, error) {
	nlri, err := bgp.NewIPAddrPrefix(netip.PrefixFrom(a, a.BitLen()))
	if err != nil {
		return nil, err
	}
	p := &apiutil.Path{Family: bgp.RF_IPv4_UC, Nlri: nlri, Age: time.Now().Unix()}
	p.Attrs = append(p.Attrs, bgp.NewPathAttributeOrigin(originEGP))
	if a.Is4() {
		hop, err := bgp.NewPathAttributeNextHop(s.cfg.Router.Addr())
		if err != nil {
			return nil, err
		}
		p.Attrs = append(p.Attrs, hop)
		return p, nil
	}
	p.Family = bgp.RF_IPv6_UC
	hop, err := bgp.NewPathAttributeMpReachNLRI(p.Family, []bgp.PathNLRI{{NLRI: nlri}}, s.cfg.Router6.Addr())
	if err != nil {
		return nil, err
	}
	p.Attrs = append(p.Attrs, hop)
	return p, nil
}

func (s *server) setNeighbors(ctx context.Context, list []Neighbor, restarting bool) error {
	wanted := make(map[netip.Addr]Neighbor, len(list))
	for _, n := range list {
		wanted[n.Addr] = n
	}
	s.peers.ReplaceDesired(wanted)
	for c := range s.peers.Pending() {
		if c.Op != delta.Add {
			if err := s.gobgp.DeletePeer(ctx, &api.DeletePeerRequest{Address: c.Key.String()}); err != nil {
				return fmt.Errorf("remove neighbor %s: %w", c.Key, err)
			}
			s.peers.DeleteActual(c.Key)
			s.forget(c.Key)
		}
		if c.Op == delta.Remove {
			continue
		}
		if err := s.gobgp.AddPeer(ctx, &api.AddPeerRequest{Peer: s.peer(c.Want, restarting)}); err != nil {
			return fmt.Errorf("add neighbor %s: %w", c.Key, err)
		}
		s.peers.SetActual(c.Key, c.Want)
	}
	return nil
}

// peer configures a neighbor in the library. Hosts that share an AS see it in each other's
// routes, which come by way of the routers. This is not a loop, because no host passes on
// what it has learned.
func (s *server) peer(n Neighbor, restarting bool) *api.Peer {
	local := s.cfg.Router.Addr()
	if n.Addr.Is6() {
		local = s.cfg.Router6.Addr()
	}
	p := &api.Peer{
		Conf:   &api.PeerConf{NeighborAddress: n.Addr.String(), PeerAsn: n.AS, AuthPassword: n.Password, AllowOwnAsn: 1},
		Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: connectRetry, HoldTime: holdTime, KeepaliveInterval: keepalive, IdleHoldTimeAfterReset: 1}},
		// Sessions are bound to an address, not to an interface, which may be recreated
		// when the switch restarts.
		Transport: &api.Transport{LocalAddress: local.String(), RemotePort: uint32(s.cfg.Port)},
		GracefulRestart: &api.GracefulRestart{
			Enabled: true, RestartTime: restartTime, DeferralTime: deferralTime, LocalRestarting: restarting,
		},
	}
	if n.TTLSecurity {
		p.TtlSecurity = &api.TtlSecurity{Enabled: true, TtlMin: maxTTL}
	}
	for _, f := range []bgp.Family{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC} {
		p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: families[f], Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
		})
	}
	return p
}

// read returns the routes that the library has selected.
func (s *server) read() ([]Route, error) {
	var routes []Route
	for family := range families {
		err := s.gobgp.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: family}, func(n bgp.NLRI, paths []*apiutil.Path) {
			if r, ok := s.cfg.route(prefixOf(n), paths); ok {
				routes = append(routes, r)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("list the %s routes: %w", family, err)
		}
	}
	sortRoutes(routes)
	return routes, nil
}
