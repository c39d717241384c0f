package bgp

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/contiv/netplugin/utils/errs"
)

// State is the state of a speaker as reported to users.
type State struct {
	Peers      []Peer   `json:"peers,omitempty"`
	Dsts       []string `json:"dsts,omitempty"`       // prefixes that neighbors have told of, sorted
	Advertised []string `json:"advertised,omitempty"` // prefixes they have been told of, sorted
}

// Peer is a neighbor. The names of its members are fixed by those who read them.
type Peer struct {
	Config PeerConfig
	State  PeerState
}

// PeerConfig is the configuration of a neighbor.
type PeerConfig struct {
	NeighborAddress string
	PeerAs, LocalAs uint32
}

// PeerState is the state of a neighbor's session.
type PeerState struct {
	SessionState string    // idle, connect, active, opensent, openconfirm or established
	AdminState   string    // ADMIN_STATE_UP, ADMIN_STATE_DOWN or ADMIN_STATE_PFX_CT
	Since        time.Time `json:",omitzero"` // when the session was established
	Received     int       // prefixes from the neighbor
	Advertised   int       // prefixes to the neighbor
}

// Inspect returns the speaker's state. Unavailable: no speaker runs.
func (s *Speaker) Inspect(ctx context.Context) (State, error) {
	s.mu.Lock()
	srv, err := s.srv, s.err
	s.mu.Unlock()
	if srv == nil {
		if err != nil {
			return State{}, err
		}
		return State{}, errs.New(errs.Unavailable, "no BGP speaker is configured for this host")
	}
	return srv.inspect(ctx)
}

func (s *server) inspect(ctx context.Context) (State, error) {
	var p State
	err := s.gobgp.ListPeer(ctx, &api.ListPeerRequest{}, func(n *api.Peer) {
		state := n.GetState()
		peer := Peer{
			Config: PeerConfig{NeighborAddress: n.GetConf().GetNeighborAddress(), PeerAs: n.GetConf().GetPeerAsn(), LocalAs: s.cfg.AS},
			State: PeerState{
				SessionState: strings.ToLower(strings.TrimPrefix(state.GetSessionState().String(), "SESSION_STATE_")),
				AdminState:   state.GetAdminState().String(),
			},
		}
		if state.GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED {
			peer.State.Since = n.GetTimers().GetState().GetUptime().AsTime()
		}
		p.Peers = append(p.Peers, peer)
	})
	if err != nil {
		return State{}, errs.Wrap(errs.Unavailable, err)
	}
	slices.SortFunc(p.Peers, func(a, b Peer) int { return strings.Compare(a.Config.NeighborAddress, b.Config.NeighborAddress) })
	received, advertised := map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	for i := range p.Peers {
		name, state := p.Peers[i].Config.NeighborAddress, &p.Peers[i].State
		if state.Received, err = s.list(api.TableType_TABLE_TYPE_ADJ_IN, name, received); err != nil {
			return State{}, err
		}
		if state.SessionState != "established" {
			continue
		}
		if state.Advertised, err = s.list(api.TableType_TABLE_TYPE_ADJ_OUT, name, advertised); err != nil {
			return State{}, err
		}
	}
	p.Dsts, p.Advertised = sorted(received), sorted(advertised)
	return p, nil
}

// list adds the prefixes of a neighbor's table to all and counts them.
func (s *server) list(table api.TableType, peer string, all map[netip.Prefix]bool) (n int, err error) {
	for family := range families {
		err := s.gobgp.ListPath(apiutil.ListPathRequest{TableType: table, Name: peer, Family: family}, func(nlri bgp.NLRI, _ []*apiutil.Path) {
			if p := prefixOf(nlri); p.IsValid() {
				all[p] = true
				n++
			}
		})
		if err != nil {
			return n, errs.New(errs.Unavailable, "list the routes of neighbor %s: %w", peer, err)
		}
	}
	return n, nil
}

func sorted(set map[netip.Prefix]bool) []string {
	routes := make([]Route, 0, len(set))
	for p := range set {
		routes = append(routes, Route{Prefix: p})
	}
	sortRoutes(routes)
	out := make([]string, len(routes))
	for i, r := range routes {
		out[i] = r.Prefix.String()
	}
	return out
}
