package intent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/state"
)

// repair makes claims agree with their owners again. Transactions keep them consistent, so
// repairs are needed only after the store was edited by hand, and every repair is logged.
// Only claims are removed, never records that users or agents depend on.
func (l *loader) repair(ctx context.Context, commits *committer) error {
	steps := slices.Concat(l.orphanAddresses(), l.orphanTags(), l.missingClaims(), l.wrongRules(), l.wrongServices())
	for len(steps) > 0 {
		x := &tx{model: l.model}
		n := 0
		for n < len(steps) && x.size()+2 <= commits.room() {
			steps[n](x)
			n++
		}
		rev, err := commits.commit(ctx, x)
		if err != nil {
			return fmt.Errorf("repair claims: %w", err)
		}
		x.merge(rev)
		steps = steps[n:]
	}
	return nil
}

// step plans one repair.
type step = func(*tx)

// orphanAddresses returns repairs of claims whose owner does not exist or has another
// address.
func (l *loader) orphanAddresses() []step {
	var steps []step
	m := l.model
	for k, r := range m.addrs.base {
		owner := r.v.Owner
		kind, id, _ := strings.Cut(owner, "/")
		live := true
		net, exists := m.networks.records.base[k.net]
		switch {
		case !exists:
			live = m.unreadable[state.NetworkRoot+k.net] != "" // then nobody can tell
		case owner == ownerGateway:
			live = k.what == net.v.Gateway || k.what == net.v.IPv6Gateway
		case kind == "endpoint":
			ep, ok := m.endpoints.base[id]
			live = ok && ep.v.NetID == k.net && (ep.v.IPAddress == k.what || ep.v.IPv6Address == k.what) ||
				m.unreadable[state.EndpointRoot+id] != ""
		case kind == "group":
			_, ok := m.groups.records.base[id]
			live = ok || m.unreadable[state.GroupRoot+id] != ""
		case kind == "service":
			s, ok := m.services.records.base[id]
			live = ok && (s.v.IPAddress == k.what || s.v.IPv6Address == k.what) && state.NetworkID(s.v.Network, s.v.Tenant) == k.net ||
				m.unreadable[state.ServiceLBRoot+id] != ""
		}
		if live {
			continue
		}
		l.log.WithFields(logrus.Fields{"network": k.net, "address": k.what, "owner": owner}).Error("releasing an address that its owner does not use")
		steps = append(steps, func(x *tx) {
			x.freeAddress(k.net, k.what, owner)
			if s := x.spaces[k.net]; s != nil && kind == "group" {
				s.RemovePool(owner)
			}
		})
	}
	return steps
}

// orphanTags returns repairs of tags whose owner does not exist.
func (l *loader) orphanTags() []step {
	var steps []step
	m := l.model
	for k, r := range m.tags.base {
		kind, id, _ := strings.Cut(r.v.Owner, "/")
		live := true
		switch kind {
		case "network":
			_, ok := m.networks.records.base[id]
			live = ok || m.unreadable[state.NetworkRoot+id] != ""
		case "group":
			_, ok := m.groups.records.base[id]
			live = ok || m.unreadable[state.GroupRoot+id] != ""
		}
		if live {
			continue
		}
		l.log.WithFields(logrus.Fields{"pool": k.pool, "tag": k.tag, "owner": r.v.Owner}).Error("releasing a tag whose owner does not exist")
		steps = append(steps, func(x *tx) { x.freeTag(k.pool, k.tag, r.v.Owner) })
	}
	return steps
}

// missingClaims returns repairs of owners without claim for their address or tag: the claim
// is made, or the conflict is reported if somebody else has it.
func (l *loader) missingClaims() []step {
	var steps []step
	m := l.model
	address := func(net, addr, owner string) {
		if s := m.spaces[net]; s == nil || addr == "" {
			return
		}
		claim, ok := m.addrs.base[claimKey{net, addr}]
		if ok && claim.v.Owner == owner {
			return
		}
		log := l.log.WithFields(logrus.Fields{"network": net, "address": addr, "owner": owner})
		if a, fine := parseAddr(addr); ok || !fine || m.spaces[net].Taken(a) {
			log.Error("address conflict: an address in use is allocated to another owner")
			return
		}
		log.Error("an address in use was not allocated; allocating it")
		steps = append(steps, func(x *tx) {
			if err := x.claimAddress(net, addr, owner); err != nil {
				log.WithError(err).Error("cannot allocate an address that is in use")
			}
		})
	}
	for _, id := range slices.Sorted(maps.Keys(m.endpoints.base)) {
		ep := m.endpoints.base[id].v
		address(ep.NetID, ep.IPAddress, ownerEndpoint(id))
		address(ep.NetID, ep.IPv6Address, ownerEndpoint(id))
	}
	for id, r := range m.services.records.base {
		address(state.NetworkID(r.v.Network, r.v.Tenant), r.v.IPAddress, ownerService(id))
		address(state.NetworkID(r.v.Network, r.v.Tenant), r.v.IPv6Address, ownerService(id))
	}
	tag := func(pool string, n int, owner string) {
		if _, ok := m.tags.base[tagKey{pool, n}]; ok || n == 0 {
			return
		}
		log := l.log.WithFields(logrus.Fields{"pool": pool, "tag": n, "owner": owner})
		log.Error("a tag in use was not allocated; allocating it")
		steps = append(steps, func(x *tx) {
			if err := x.claimTag(pool, n, owner); err != nil {
				log.WithError(err).Error("cannot allocate a tag that is in use")
			}
		})
	}
	for id, r := range m.networks.records.base {
		address(id, r.v.Gateway, ownerGateway)
		address(id, r.v.IPv6Gateway, ownerGateway)
		if r.v.PktTagType == state.EncapVLAN {
			tag(tags.VLAN, r.v.PktTag, ownerNetwork(id))
		} else {
			tag(tags.Local, r.v.PktTag, ownerNetwork(id))
			tag(tags.VXLAN, r.v.ExtPktTag, ownerNetwork(id))
		}
	}
	for id, r := range m.groups.records.base {
		tag(tags.GroupID, r.v.EndpointGroupID, ownerGroup(id))
		steps = append(steps, l.missingPool(r.v)...)
	}
	return steps
}

// missingPool returns repairs of a group whose pool is not claimed.
func (l *loader) missingPool(g *state.EndpointGroup) []step {
	net, owner := state.NetworkID(g.NetworkName, g.TenantName), ownerGroup(g.ID)
	s := l.model.spaces[net]
	r, ok := contivmodel.ParseRange(g.IPPool)
	if s == nil || !ok || s.HasPool(owner) {
		return nil
	}
	l.log.WithFields(logrus.Fields{"network": net, "pool": g.IPPool, "owner": owner}).Error("an address pool in use was not reserved; reserving it")
	return []step{func(x *tx) {
		s.AddPool(ipam.Pool{Owner: owner, Range: r})
		x.onUndo(func() { s.RemovePool(owner) })
		x.addrs.put(x, claimKey{net, r.String()}, &state.AddressClaim{Owner: owner})
	}}
}
