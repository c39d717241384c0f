package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// loader fills a model from the store at the start of a tenure. It reads prefix by
// prefix: what netmaster owns cannot change between the reads, because only the
// holder of the fence may write it.
//
// A record that cannot be understood is logged and left alone; everything else works.
type loader struct {
	model *model
	store objdb.Store
	log   logrus.FieldLogger
	// newest6 is, per network, when its youngest IPv6 claim was made.
	newest6 map[string]int64
	written *written // is told of every record that agents read
}

func (l *loader) load(ctx context.Context) error {
	m := l.model
	l.newest6 = map[string]int64{}
	sets := []recordSet{
		{objPrefix(contivmodel.GlobalKind()), decodeObject(contivmodel.GlobalKind(), m.globals, func(*contivmodel.Global) {})},
		{objPrefix(contivmodel.TenantKind()), decodeObject(contivmodel.TenantKind(), m.tenants, func(t *contivmodel.Tenant) {
			t.LinkSets = contivmodel.TenantLinkSets{}
		})},
		{objPrefix(contivmodel.NetworkKind()), decodeObject(contivmodel.NetworkKind(), m.networks, func(n *contivmodel.Network) {
			n.LinkSets = contivmodel.NetworkLinkSets{}
			n.Links.Tenant = tenantLink(n.TenantName)
		})},
		{objPrefix(contivmodel.EndpointGroupKind()), decodeObject(contivmodel.EndpointGroupKind(), m.groups, func(g *contivmodel.EndpointGroup) {
			g.LinkSets, g.Links = contivmodel.EndpointGroupLinkSets{}, contivmodel.EndpointGroupLinks{}
			linkGroup(g)
		})},
		{objPrefix(contivmodel.NetprofileKind()), decodeObject(contivmodel.NetprofileKind(), m.profiles, func(p *contivmodel.Netprofile) {
			p.LinkSets = contivmodel.NetprofileLinkSets{}
			p.Links.Tenant = tenantLink(p.TenantName)
		})},
		{objPrefix(contivmodel.PolicyKind()), decodeObject(contivmodel.PolicyKind(), m.policies, func(p *contivmodel.Policy) {
			p.LinkSets = contivmodel.PolicyLinkSets{}
			p.Links.Tenant = tenantLink(p.TenantName)
		})},
		{objPrefix(contivmodel.AppProfileKind()), decodeObject(contivmodel.AppProfileKind(), m.apps, linkApp)},
		{objPrefix(contivmodel.ExtContractsGroupKind()), decodeObject(contivmodel.ExtContractsGroupKind(), m.contracts, func(c *contivmodel.ExtContractsGroup) {
			c.LinkSets = contivmodel.ExtContractsGroupLinkSets{}
		})},
		{objPrefix(contivmodel.BgpKind()), decodeObject(contivmodel.BgpKind(), m.bgps, func(*contivmodel.Bgp) {})},
		{objPrefix(contivmodel.AciGwKind()), decodeObject(contivmodel.AciGwKind(), m.gateways, func(*contivmodel.AciGw) {})},
		{objPrefix(contivmodel.ServiceLBKind()), decodeObject(contivmodel.ServiceLBKind(), m.services, linkService)},
		{objPrefix(contivmodel.RuleKind()), decodeObject(contivmodel.RuleKind(), m.rules, linkRule)},
		{state.GlobalKey, decodeRecord(m.settings)},
		{state.NetworkRoot, l.network},
		{state.GroupRoot, decodeRecord(m.grpStates)},
		{state.EndpointRoot, decodeRecord(m.endpoints)},
		{state.IPAMRoot, l.address},
		{state.LateReleasesRt, l.lateReleases},
		{state.TagRoot, l.tag},
		{state.PolicyRuleRoot, decodeRecord(m.ruleRecs)},
		{state.ServiceLBRoot, decodeRecord(m.svcRecs)},
		{state.ProviderRoot, decodeRecord(m.provLists)},
		{state.BgpRoot, decodeRecord(m.bgpRecs)},
	}
	if err := l.read(ctx, sets); err != nil {
		return err
	}
	l.ranges()
	return nil
}

// recordSet is one sort of record in the store and what is made of each.
type recordSet struct {
	prefix string
	take   func(rest string, kv objdb.KV) error
}

// read takes the records of the sets, set after set. While one is being taken the store
// reads the next.
func (l *loader) read(ctx context.Context, sets []recordSet) error {
	type list struct {
		recordSet
		kvs []objdb.KV
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists := make(chan list)
	go func() {
		defer close(lists)
		for _, set := range sets {
			kvs, _, err := l.store.List(ctx, set.prefix)
			select {
			case lists <- list{set, kvs, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for set := range lists {
		if set.err != nil {
			return fmt.Errorf("read %s: %w", set.prefix, set.err)
		}
		for _, kv := range set.kvs {
			l.written.note(kv.Key, kv.ModRevision)
			if err := set.take(strings.TrimPrefix(kv.Key, set.prefix), kv); err != nil {
				l.log.WithField("key", kv.Key).WithError(err).Error("unreadable record in the store, left alone")
				l.model.unreadable[kv.Key] = err.Error()
			}
		}
	}
	return context.Cause(ctx)
}

func objPrefix[T, O any](kind contivmodel.Kind[T, O]) string {
	return state.ModelRoot + kind.Type + "/"
}

// decodeObject reads a model object; links are made anew from what it names.
func decodeObject[T, O any](kind contivmodel.Kind[T, O], t *table[string, T], relink func(*T)) func(string, objdb.KV) error {
	return func(key string, kv objdb.KV) error {
		obj := new(T)
		if err := json.Unmarshal(kv.Value, obj); err != nil {
			return err
		}
		if kind.Key(obj) != key || kind.Ident(obj) != key {
			return errs.New(errs.Invalid, "object under key %s says it is %s", key, kind.Ident(obj))
		}
		relink(obj)
		t.load(key, obj, kv.ModRevision)
		return nil
	}
}

func decodeRecord[V any](t *table[string, V]) func(string, objdb.KV) error {
	return func(key string, kv objdb.KV) error {
		rec := new(V)
		if err := json.Unmarshal(kv.Value, rec); err != nil {
			return err
		}
		t.load(key, rec, kv.ModRevision)
		return nil
	}
}

func (l *loader) network(id string, kv objdb.KV) error {
	rec := new(state.Network)
	if err := json.Unmarshal(kv.Value, rec); err != nil {
		return err
	}
	if rec.ID != id {
		return errs.New(errs.Invalid, "network under id %s says it is %q", id, rec.ID)
	}
	cfg, err := spaceConfig(rec)
	if err != nil {
		return err
	}
	l.model.netStates.load(id, rec, kv.ModRevision)
	l.model.openSpace(rec.Tenant, id, rec.NetworkName, ipam.New(cfg))
	return nil
}

// address reads a claim. One that is unreadable still keeps its address.
func (l *loader) address(rest string, kv objdb.KV) error {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return errs.New(errs.Invalid, "no address in the key")
	}
	k := claimKey{rest[:slash], rest[slash+1:]}
	claim := new(state.AddressClaim)
	decodeErr := json.Unmarshal(kv.Value, claim)
	s := l.model.spaces[k.net]
	if r, ok := contivmodel.ParseRange(k.what); ok && strings.Contains(k.what, "-") {
		if decodeErr != nil {
			return decodeErr
		}
		if s != nil {
			s.AddPool(ipam.Pool{Owner: claim.Owner, Range: r})
		}
	} else if a, ok := parseAddr(k.what); ok && a.String() == k.what {
		if s != nil {
			s.Take(a)
			if a.Is6() && claim.Owner != ownerGateway && kv.CreateRevision > l.newest6[k.net] {
				l.newest6[k.net] = kv.CreateRevision
				s.SetLast6(a)
			}
		}
	} else {
		return errs.New(errs.Invalid, "%q is no address or pool", k.what)
	}
	if decodeErr != nil {
		claim.Owner = "unreadable"
	}
	l.model.addrs.load(k, claim, kv.ModRevision)
	return decodeErr
}

// lateReleases reads which releases of an address may still come.
func (l *loader) lateReleases(rest string, kv objdb.KV) error {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return errs.New(errs.Invalid, "no address in the key")
	}
	late := new(state.LateReleases)
	if err := json.Unmarshal(kv.Value, late); err != nil {
		return err
	}
	l.model.late.load(claimKey{rest[:slash], rest[slash+1:]}, late, kv.ModRevision)
	return nil
}

// tag reads a claim. One that is unreadable still keeps its tag.
func (l *loader) tag(rest string, kv objdb.KV) error {
	pool, text, _ := strings.Cut(rest, "/")
	p := l.model.pools[pool]
	n, err := strconv.Atoi(text)
	if p == nil || err != nil || n < 1 || strconv.Itoa(n) != text {
		return errs.New(errs.Invalid, "no pool or tag in the key")
	}
	p.Take(n)
	claim := new(state.TagClaim)
	if err := json.Unmarshal(kv.Value, claim); err != nil {
		claim.Owner = "unreadable"
		l.model.tags.load(tagKey{pool, n}, claim, kv.ModRevision)
		return err
	}
	l.model.tags.load(tagKey{pool, n}, claim, kv.ModRevision)
	return nil
}

// ranges sets the limits of the tag pools from the settings.
func (l *loader) ranges() {
	g, ok := l.model.globals.base[contivmodel.GlobalName]
	if !ok {
		return
	}
	if r, err := contivmodel.ParseVLANs(g.v.Vlans); err == nil {
		l.model.pools[tags.VLAN].SetRange(r)
	}
	if r, err := contivmodel.ParseVXLANs(g.v.Vxlans); err == nil {
		l.model.pools[tags.VXLAN].SetRange(r)
	}
}
