package intent

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/state"
)

// A client that has reserved an address releases it when it is done, possibly late: its
// endpoint, and with it the address, may be gone by then, and another client may have
// reserved the address again. So a release belongs to one reservation. Agents name theirs.
// A client without names, like those of the original, will release each address that it has
// reserved once: that release is expected, and ends nothing.

// reservedOn precedes, in the owner of a reservation, the host that requested it.
const reservedOn = " on "

// maxLateReleases limits the expected releases per address. A client that never releases
// must not fill the store.
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

// reservedAs returns the address of a reservation by its name, if it is in a network and
// equals want, unless want is zero.
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

// releaser reports whether the client that made a reservation may release it without its
// name, and from which host.
func releaser(claim *state.AddressClaim) (host string, comes bool) {
	if claim.Reservation != "" || claim.Held || !strings.HasPrefix(claim.Owner, ownerReserved) {
		return "", false
	}
	_, host, _ = strings.Cut(claim.Owner, reservedOn)
	return host, true
}

// expectRelease records that a former owner of an address may still release it.
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

// tookLateRelease reports whether a release from a host was expected, and no longer expects
// it. A client that names no host may be on any of them. If it was on another one, that
// host's release is still to come and will be taken for this client's: as says which host
// an unexpected release is to be treated as.
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

// endReservation ends the reservation that a release belongs to, if it exists, and the
// holding of an endpoint's address by the manager of a swarm.
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
		// The agent of that host has been restarted and has lost the name.
		x.freeAddress(k.net, k.what, claim.Owner)
	}
}
