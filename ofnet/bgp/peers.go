package bgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// hear records the End-of-RIB of a neighbor for a family (RFC 4724 section 2).
func (s *server) hear(peer netip.Addr, family bgp.Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard[peer] == nil {
		s.heard[peer] = map[bgp.Family]bool{}
	}
	s.heard[peer][family] = true
}

func (s *server) forget(peer netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.heard, peer)
	delete(s.fresh, peer)
}

// tell announces everything to neighbors whose session has just been established. A speaker
// that restarts is supposed to wait for the routes of others first (RFC 4724 section 4.1).
// This one must not: its announcements do not depend on them, and a neighbor drops the
// routes it has kept if the session ends again before they are refreshed.
func (s *server) tell(ctx context.Context) error {
	s.mu.Lock()
	fresh := slices.Collect(maps.Keys(s.fresh))
	clear(s.fresh)
	s.mu.Unlock()
	for _, addr := range fresh {
		if _, ours := s.peers.Actual(addr); !ours {
			continue
		}
		err := s.gobgp.ResetPeer(ctx, &api.ResetPeerRequest{Address: addr.String(), Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT})
		if err != nil {
			return fmt.Errorf("announce to neighbor %s: %w", addr, err)
		}
	}
	return nil
}

// peerEvent records which families a neighbor is going to send once its session is up.
func (s *server) peerEvent(p apiutil.Peer) {
	addr := p.State.NeighborAddress
	s.log.WithField("neighbor", addr).WithField("state", p.State.SessionState.String()).Debug("BGP session")
	if p.State.SessionState != bgp.BGP_FSM_ESTABLISHED {
		if p.State.SessionState == bgp.BGP_FSM_IDLE && p.State.DisconnectMessage != "" {
			s.log.WithField("neighbor", addr).WithField("reason", p.State.DisconnectMessage).Warn("BGP session lost")
		}
		return
	}
	s.log.WithField("neighbor", addr).Info("BGP session established")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh[addr] = true
	told := s.heard[addr]
	s.heard[addr] = map[bgp.Family]bool{}
	for _, f := range offered(p.State.RemoteCap) {
		s.heard[addr][f] = told[f]
	}
}

// offered lists the families that both the neighbor and this speaker support. A neighbor
// that names none means IPv4 (RFC 4760 section 8).
func offered(caps []bgp.ParameterCapabilityInterface) []bgp.Family {
	var out []bgp.Family
	for _, c := range caps {
		if mp, ok := c.(*bgp.CapMultiProtocol); ok && families[mp.CapValue] != nil {
			out = append(out, mp.CapValue)
		}
	}
	if len(out) == 0 {
		return []bgp.Family{bgp.RF_IPv4_UC}
	}
	return out
}

// heardAll reports whether every neighbor has sent everything.
func (s *server) heardAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr := range s.peers.AllDesired() {
		if len(s.heard[addr]) == 0 {
			return false
		}
		for _, done := range s.heard[addr] {
			if !done {
				return false
			}
		}
	}
	return true
}
