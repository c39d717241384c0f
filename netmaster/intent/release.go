package intent

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/state"
)

// A client that has reserved an address gives it back when it is done, and may be late: its
// endpoint, and with it the address, is gone by then, and another client may have reserved
// the address again. So a release belongs to one reservation. Agents name theirs. A client
// that gives no name, as those of the original, has one release to come for each address
// that it has reserved: that one is waited for, and ends nothing.

// reservedOn stands in the owner of a reservation before the host that asked for it.
const reservedOn = " on "

// maxLateReleases bounds how many releases are waited for per address. A client that never
// gives anything back must not fill the store.
const maxLateReleases = 16

// reserveAddress claims a free address for a client; name may be empty.
func (x *tx) reserveAddress(net, addr, reserver, name string) error {
	if err := x.claimAddress(net, addr, reserver); err != nil {
		return err
	}
	if name != "" {
		x.addrs.put(x, claimKey{net, addr}, &state.AddressClaim{Owner: reserver, Reservation: name})
	}
	return nil
}

// reservedAs returns the address of a reservation by its name, if it is in a network and the
// address is the one that is wanted, or any.
func (x *tx) reservedAs(name, net string, want netip.Addr) (netip.Addr, bool) {
	if name == "" {
		return netip.Addr{}, false
	}
	for k, claim := range x.addrs.where(x.addrs.reservedAs, name) {
		a, ok := parseAddr(k.what)
		if ok && k.net == net && strings.HasPrefix(claim.Owner, ownerReserved) && (!want.IsValid() || want == a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// releaser tells whether the client that made a reservation may give it back without
// naming it, and from which host.
func releaser(claim *state.AddressClaim) (host string, comes bool) {
	if claim.Reservation != "" || claim.Held || !strings.HasPrefix(claim.Owner, ownerReserved) {
		return "", false
	}
	_, host, _ = strings.Cut(claim.Owner, reservedOn)
	return host, true
}

// expectRelease notes that a former owner of an address may still release it.
func (x *tx) expectRelease(k claimKey, host string) {
	late := &state.LateReleases{}
	if before, ok := x.late.get(k); ok {
		late.From, late.Owed = slices.Clone(before.From), before.Owed
	}
	if len(late.From) == maxLateReleases {
		late.From = late.From[1:]
	}
	late.From = append(late.From, host)
	x.late.put(x, k, late)
}

// tookLateRelease reports whether a release from a host is one that was waited for, which
// it is not any more then. A client that names no host may be any of them; if it was not,
// the release of that host is still to come, and is then the one of who names no host:
// as tells who a release that was not waited for is to be taken for.
func (x *tx) tookLateRelease(k claimKey, host string) (took bool, as string) {
	before, ok := x.late.get(k)
	if !ok {
		return false, host
	}
	late := state.LateReleases{From: slices.Clone(before.From), Owed: slices.Clone(before.Owed)}
	i, owed := slices.Index(late.From, host), slices.Index(late.Owed, host)
	switch {
	case i >= 0:
		late.From = slices.Delete(late.From, i, i+1)
	case host == "" && len(late.From) > 0:
		late.From, late.Owed = late.From[1:], append(late.Owed, late.From[0])
		late.Owed = late.Owed[max(0, len(late.Owed)-maxLateReleases):]
	case owed >= 0:
		late.Owed = slices.Delete(late.Owed, owed, owed+1)
	default:
		return false, host
	}
	if len(late.From)+len(late.Owed) == 0 {
		x.late.del(x, k)
	} else {
		x.late.put(x, k, &late)
	}
	if i < 0 && owed >= 0 && host != "" {
		return false, ""
	}
	return true, host
}

// endReservation ends the reservation that a release belongs to, if it is there, and that
// the manager of a swarm holds an endpoint's address.
func (x *tx) endReservation(k claimKey, host, name string) {
	claim, claimed := x.addrs.get(k)
	if name != "" {
		if claimed && claim.Reservation == name && strings.HasPrefix(claim.Owner, ownerReserved) {
			x.freeAddress(k.net, k.what, claim.Owner)
		}
		return
	}
	took, host := x.tookLateRelease(k, host)
	if took || !claimed {
		return
	}
	switch by, unnamed := releaser(claim); {
	case claim.Unreleased && (host == "" || host == claim.ReservedBy):
		settled := *claim
		settled.Unreleased, settled.ReservedBy = false, ""
		x.addrs.put(x, k, &settled)
	case claim.Held && strings.HasPrefix(claim.Owner, ownerReserved), unnamed && (host == "" || host == by):
		x.freeAddress(k.net, k.what, claim.Owner)
	case claim.Held:
		loose := *claim
		loose.Held = false
		x.addrs.put(x, k, &loose)
	case host != "" && strings.HasPrefix(claim.Owner, ownerReserved) && strings.HasSuffix(claim.Owner, reservedOn+host):
		// The agent of that host has been restarted and does not know the name any more.
		x.freeAddress(k.net, k.what, claim.Owner)
	}
}
