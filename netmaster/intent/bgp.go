package intent

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// bgpTables are the BGP speakers and the records that agents start them from.
type bgpTables struct {
	*objects[contivmodel.Bgp, contivmodel.BgpOper]
	records *table[string, state.Bgp] // by host label
}

func registerBgps(m *model) bgpTables {
	return bgpTables{
		objects: register(m, contivmodel.BgpKind(), lifecycle[contivmodel.Bgp, contivmodel.BgpOper]{
			create: func(x *tx, b *contivmodel.Bgp) error { return putBgp(x, nil, b) },
			update: putBgp,
			view:   showBgp,
			remove: func(x *tx, b *contivmodel.Bgp) error {
				if _, ok := x.bgps.records.get(b.Hostname); ok {
					x.bgps.records.del(x, b.Hostname)
				}
				return nil
			},
			ask: func(ctx context.Context, e *Engine, b *contivmodel.Bgp) (contivmodel.BgpOper, error) {
				return e.bgpOper(ctx, b)
			},
		}),
		records: records[state.Bgp](m, state.BgpRoot),
	}
}

// putBgp plans a speaker and the record that its agent starts it by.
func putBgp(x *tx, old, b *contivmodel.Bgp) error {
	if inACI(x) {
		return errs.New(errs.Invalid, "Bgp is not supported in ACI fabric mode")
	}
	stored := *b // what was asked for may have to be planned again
	b = &stored
	if err := sealPassword(x.cfg.Secrets, old, b); err != nil {
		return err
	}
	password, secret, err := passwordForAgent(x.cfg, b)
	if err != nil {
		return err
	}
	x.bgps.put(x, b.Key, b)
	x.bgps.records.put(x, b.Hostname, &state.Bgp{
		ID: b.Hostname, Hostname: b.Hostname, RouterIP: b.Routerip, As: b.As, NeighborAs: b.NeighborAs, Neighbor: b.Neighbor,
		RouterIP6: b.Routerip6, Neighbors: b.Neighbors, Password: password, Secret: secret, TTLSecurity: b.TTLSecurity == "yes",
	})
	return nil
}

// bgpOper asks the agent of the speaker's host. A speaker without peers has no states.
func (e *Engine) bgpOper(ctx context.Context, b *contivmodel.Bgp) (contivmodel.BgpOper, error) {
	bgp, err := e.agents.InspectBGP(ctx, b.Hostname)
	if err != nil {
		return contivmodel.BgpOper{}, err
	}
	oper := contivmodel.BgpOper{NumRoutes: len(bgp.Dsts), Routes: bgp.Dsts, Advertised: bgp.Advertised}
	for _, p := range bgp.Peers {
		if p.Config.NeighborAddress == "" { // an agent that tells states only
			continue
		}
		oper.Neighbors = append(oper.Neighbors, contivmodel.BgpNeighbor{
			Address: p.Config.NeighborAddress, As: p.Config.PeerAs, Status: p.State.SessionState, AdminStatus: p.State.AdminState,
			Received: p.State.Received, Advertised: p.State.Advertised,
		})
	}
	if len(bgp.Peers) > 0 {
		oper.AdminStatus, oper.NeighborStatus = bgp.Peers[0].State.AdminState, bgp.Peers[0].State.SessionState
	}
	return oper, nil
}
