package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/delta"
)

// hold keeps flows and groups of one kind that an earlier agent has left. Whether they are
// still wanted is known only some time after the start; until then packets use them.
type hold struct {
	kind holdKind
	// flows and groups are those that this process has wanted at some time. When it no
	// longer wants them they are removed immediately.
	flows  map[of.FlowKey]struct{}
	groups map[uint32]struct{}
}

// holdKind says what a hold is for.
type holdKind struct {
	feature               uint8  // of the flows
	firstGroup, lastGroup uint32 // numbers of the groups
}

var (
	// heldRoutes are routes to outside networks, which BGP neighbors send (graceful
	// restart, RFC 4724).
	heldRoutes = holdKind{featureExternal, firstHopSet, firstHopSet | hopSetBits}
	// heldServices are services, some of which come from the Kubernetes API server.
	heldServices = holdKind{featureService, serviceGroup, serviceGroup | MaxFrontend}
	// heldEndpointPolicies are network policies of pods, which come from the same
	// server.
	heldEndpointPolicies = holdKind{feature: featureEndpointPolicy, firstGroup: 1} // no groups
)

// HoldStaleRoutes keeps the routes and next hops that are in the bridge and not set yet,
// until SweepStaleRoutes. It must be called before InitialSyncDone.
func (s *Switch) HoldStaleRoutes() { s.startHold(heldRoutes) }

// SweepStaleRoutes removes the routes that have not been set since HoldStaleRoutes.
func (s *Switch) SweepStaleRoutes() { s.endHold(heldRoutes) }

// HoldStaleServices keeps the services that are in the bridge and not set yet, until
// SweepStaleServices. It must be called before InitialSyncDone.
func (s *Switch) HoldStaleServices() { s.startHold(heldServices) }

// SweepStaleServices removes the services that have not been set since HoldStaleServices.
func (s *Switch) SweepStaleServices() { s.endHold(heldServices) }

// HoldStaleEndpointPolicies keeps the endpoint policies that are in the bridge and not set
// yet, until SweepStaleEndpointPolicies. It must be called before InitialSyncDone.
func (s *Switch) HoldStaleEndpointPolicies() { s.startHold(heldEndpointPolicies) }

// SweepStaleEndpointPolicies removes the endpoint policies that have not been set since
// HoldStaleEndpointPolicies.
func (s *Switch) SweepStaleEndpointPolicies() { s.endHold(heldEndpointPolicies) }

func (s *Switch) startHold(kind holdKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds[kind] == nil {
		s.holds[kind] = &hold{kind: kind, flows: map[of.FlowKey]struct{}{}, groups: map[uint32]struct{}{}}
	}
}

func (s *Switch) endHold(kind holdKind) {
	s.mu.Lock()
	delete(s.holds, kind)
	s.mu.Unlock()
	s.wake()
}

// holds are the holds that have not ended.
type holds map[holdKind]*hold

// note records what p wants of the kinds that are held.
func (all holds) note(p Program) {
	for _, h := range all {
		for _, f := range p.Flows {
			if h.kind.hasFlow(f.Cookie) {
				h.flows[f.Key()] = struct{}{}
			}
		}
		for _, g := range p.Groups {
			if h.kind.hasGroup(g.ID) {
				h.groups[g.ID] = struct{}{}
			}
		}
	}
}

func (k holdKind) hasFlow(cookie uint64) bool {
	return cookie>>cookieFeatureShift&0xff == uint64(k.feature)
}

func (k holdKind) hasGroup(id uint32) bool { return k.firstGroup <= id && id <= k.lastGroup }

// freeFlow reports whether a flow without owner may be removed.
func (all holds) freeFlow(c delta.Change[of.FlowKey, body]) bool {
	for _, h := range all {
		if _, known := h.flows[c.Key]; !known && h.kind.hasFlow(c.Have.cookie) {
			return false
		}
	}
	return true
}

func (all holds) freeGroup(c delta.Change[uint32, of.Group]) bool {
	for _, h := range all {
		if _, known := h.groups[c.Key]; !known && h.kind.hasGroup(c.Key) {
			return false
		}
	}
	return true
}

// countHeld counts the removals that wait for the end of a hold.
func (s *Switch) countHeld() (n int) {
	if len(s.holds) == 0 {
		return 0
	}
	for c := range s.flows.open(true) {
		if !s.holds.freeFlow(c) {
			n++
		}
	}
	for c := range s.groups.open(true) {
		if !s.holds.freeGroup(c) {
			n++
		}
	}
	return n
}
