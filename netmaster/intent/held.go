package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// hold marks a claim as held by the manager of a swarm, and reports whether there is one
// that can be: a reservation, or that of an endpoint. The manager asks again for what it
// holds when it has been restarted.
func (x *tx) hold(k claimKey) bool {
	claim, ok := x.addrs.get(k)
	if !ok || !strings.HasPrefix(claim.Owner, ownerReserved) && !strings.HasPrefix(claim.Owner, ownerEndpoint("")) {
		return false
	}
	if !claim.Held {
		x.addrs.put(x, k, &state.AddressClaim{Owner: claim.Owner, Held: true})
	}
	return true
}

// letGo ends a reservation, and that an endpoint's address is held.
func (x *tx) letGo(k claimKey) {
	claim, ok := x.addrs.get(k)
	switch {
	case ok && strings.HasPrefix(claim.Owner, ownerReserved):
		x.freeAddress(k.net, k.what, claim.Owner)
	case ok && claim.Held:
		x.addrs.put(x, k, &state.AddressClaim{Owner: claim.Owner})
	}
}

// unhold ends that addresses of a network are held. Reserved ones are given back at once if
// they are not wanted again, else after a while.
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
			x.addrs.put(x, k, &state.AddressClaim{Owner: claim.Owner})
		}
	}
}

// leaveAddress ends an owner's claim of an address. One that is held is reserved again.
func (x *tx) leaveAddress(net, addr, owner string) {
	k := claimKey{net, addr}
	if claim, ok := x.addrs.get(k); ok && claim.Owner == owner && claim.Held {
		x.addrs.put(x, k, &state.AddressClaim{Owner: ownerReserved + net, Held: true})
		return
	}
	x.freeAddress(net, addr, owner)
}

// holders returns the ids of the networks that docker networks of a swarm stand for: its
// manager may hold addresses of these.
func (e *Engine) holders(ctx context.Context) (map[string]bool, error) {
	kvs, _, err := e.store.List(ctx, docknet.Root)
	if err != nil {
		return nil, fmt.Errorf("list docker networks: %w", err)
	}
	out := map[string]bool{}
	for _, kv := range kvs {
		var r docknet.Record
		if json.Unmarshal(kv.Value, &r) == nil {
			out[r.Place().NetworkID()] = true
		}
	}
	return out, nil
}
