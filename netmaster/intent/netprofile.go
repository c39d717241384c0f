package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

type profileTables struct {
	*objects[contivmodel.Netprofile, contivmodel.NoOper]
	ofTenant *index[string, contivmodel.Netprofile]
}

func registerProfiles(m *model) profileTables {
	t := profileTables{objects: register(m, contivmodel.NetprofileKind(), lifecycle[contivmodel.Netprofile, contivmodel.NoOper]{
		create: func(x *tx, p *contivmodel.Netprofile) error {
			if err := needTenant(x, p.TenantName); err != nil {
				return err
			}
			return putProfile(x, p)
		},
		update: func(x *tx, _, p *contivmodel.Netprofile) error { return putProfile(x, p) },
		remove: func(x *tx, p *contivmodel.Netprofile) error {
			if blockers := names(x.groups.where(x.groups.ofProfile, p.Key), keyOf[contivmodel.EndpointGroup]); blockers != "" {
				return errs.New(errs.InUse, "NetProfile is being used: %s by endpoint groups %s", p.Key, blockers)
			}
			return nil
		},
		view: func(p *contivmodel.Netprofile) {
			p.LinkSets.EndpointGroups = contivmodel.NewLinkSet(contivmodel.EndpointGroupType, sortedKeys(m.groups.ofProfile, p.Key))
		},
	})}
	t.ofTenant = t.indexed(func(_ string, p *contivmodel.Netprofile) string { return p.TenantName })
	return t
}

// minBurst is the smallest burst with which a rate limit works, in kilobytes.
const minBurst = 2

// putProfile plans a net profile, and its values in the records of the groups that use it.
func putProfile(x *tx, p *contivmodel.Netprofile) error {
	if p.Burst != 0 && p.Burst < minBurst {
		return errs.New(errs.Invalid, "burst %d of netprofile %s is too small: expected at least %d, or 0 for none", p.Burst, p.Key, minBurst)
	}
	x.profiles.put(x, p.Key, p)
	for _, g := range x.groups.where(x.groups.ofProfile, p.Key) {
		id := state.GroupID(g.GroupName, g.TenantName)
		before, ok := x.groups.records.get(id)
		if !ok {
			continue
		}
		rec := *before
		if setProfile(&rec, p); rec != *before {
			x.groups.records.put(x, id, &rec)
		}
	}
	return nil
}

// setProfile copies the values of a net profile into a group's record.
func setProfile(rec *state.EndpointGroup, p *contivmodel.Netprofile) {
	rec.Bandwidth, rec.DSCP, rec.Burst = p.Bandwidth, p.DSCP, p.Burst
}
