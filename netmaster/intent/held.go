package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// hold marks a claim as held by the manager of a swarm, and reports whether it can be: it
// must be a reservation, or that of an endpoint. A restarted manager asks again for what it
// holds.
func (x *tx) hold(k claimKey) bool {
	claim, ok := x.addrs.get(k)
	if !ok || !strings.HasPrefix(claim.Owner, ownerReserved) && !strings.HasPrefix(claim.Owner, ownerEndpoint("")) {
		return false
	}
	if !claim.Held {
		held := *claim
		held.Held = true
		x.addrs.put(x, k, &held)
	}
	return true
}

// unhold ends the holding of a network's addresses. Reserved ones are freed immediately if
// gone, or else after a while unless they are requested again.
func (x *tx) unhold(net string, gone bool) {
	var held []claimKey
	for k, r := range x.addrs.base {
		if k.net == net && r.v.Held {
			held = append(held, k)
		}
	}
	for _, k := range held {
		claim, ok := x.addrs.get(k)
		switch {
		case !ok || !claim.Held:
		case gone && strings.HasPrefix(claim.Owner, ownerReserved):
			x.freeAddress(k.net, k.what, claim.Owner)
		default:
			loose := *claim
			loose.Held = false
			x.addrs.put(x, k, &loose)
		}
	}
}

// leaveAddress ends an owner's claim of an address. If it is held it becomes a reservation
// again.
func (x *tx) leaveAddress(net, addr, owner string) {
	k := claimKey{net, addr}
	claim, ok := x.addrs.get(k)
	if !ok || claim.Owner != owner {
		return
	}
	if claim.Held {
		x.addrs.put(x, k, &state.AddressClaim{Owner: ownerReserved + net, Held: true, Reservation: claim.Reservation})
		return
	}
	if claim.Unreleased {
		x.expectRelease(k, claim.ReservedBy)
	}
	x.freeAddress(net, addr, owner)
}

// holders returns the ids of the networks that a swarm's docker networks stand for: its
// manager may hold addresses in these.
func (e *Engine) holders(ctx context.Context) (map[string]bool, error) {
	kvs, _, err := e.store.List(ctx, docknet.Root)
	if err != nil {
		return nil, fmt.Errorf("list docker networks: %w", err)
	}
	out := map[string]bool{}
	for _, kv := range kvs {
		var r docknet.Record
		if json.Unmarshal(kv.Value, &r) == nil {
			out[r.Ref().NetworkID()] = true
		}
	}
	return out, nil
}
