package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/delta"
)

// hold keeps what a predecessor has left of the routes to the outside. Only the
// routers there know whether they still hold, and they tell it some time after the
// start, while packets go on (graceful restart, RFC 4724).
type hold struct {
	// flows and groups are those that this process has wanted at some time: what it no
	// longer wants may go at once.
	flows  map[of.FlowKey]struct{}
	groups map[uint32]struct{}
}

// HoldRoutes keeps the routes and next hops that the bridge has and nobody wants yet,
// until ReleaseRoutes. It must be called before Complete.
func (s *Switch) HoldRoutes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil {
		s.hold = &hold{flows: map[of.FlowKey]struct{}{}, groups: map[uint32]struct{}{}}
	}
}

// ReleaseRoutes lets go of the routes that nobody has wanted since HoldRoutes.
func (s *Switch) ReleaseRoutes() {
	s.mu.Lock()
	s.hold = nil
	s.mu.Unlock()
	s.wake()
}

// note remembers what is wanted of what may be held.
func (h *hold) note(p Program) {
	if h == nil {
		return
	}
	for _, f := range p.Flows {
		if isRoute(f.Cookie) {
			h.flows[f.Key()] = struct{}{}
		}
	}
	for _, g := range p.Groups {
		h.groups[g.ID] = struct{}{}
	}
}

func isRoute(cookie uint64) bool { return cookie>>cookieFeatureShift&0xff == featureExternal }

func (h *hold) freeFlow(c delta.Change[of.FlowKey, body]) bool {
	if h == nil || !isRoute(c.Have.cookie) {
		return true
	}
	_, known := h.flows[c.Key]
	return known
}

func (h *hold) freeGroup(c delta.Change[uint32, of.Group]) bool {
	if h == nil || c.Key < firstHopSet || c.Key > firstHopSet|hopSetBits {
		return true
	}
	_, known := h.groups[c.Key]
	return known
}

// countHeld counts the removals that wait for ReleaseRoutes.
func (s *Switch) countHeld() (n int) {
	if s.hold == nil {
		return 0
	}
	for c := range s.flows.open(true) {
		if !s.hold.freeFlow(c) {
			n++
		}
	}
	for c := range s.groups.open(true) {
		if !s.hold.freeGroup(c) {
			n++
		}
	}
	return n
}
