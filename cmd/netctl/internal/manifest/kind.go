package manifest

import (
	"context"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/utils/errs"
)

// kind is one kind of objects, whatever its Go type. Objects are pointers to that.
type kind struct {
	typ   string   // as files say it
	names []string // the fields that name an object
	// fixed are the fields that cannot change as long as the object exists; all stands
	// for all of them.
	fixed []string
	all   bool
	// kept are the fields that stay as they are when they are given empty.
	kept []string
	// preset is what an object starts from.
	preset func() any

	tenant func(obj any) string          // "" for what belongs to none
	check  func(obj any) (string, error) // strips, validates, fills defaults; returns the key
	list   func(context.Context, *client.Client) ([]any, error)
	put    func(context.Context, *client.Client, any) (client.Change, error)
}

// kinds returns the kinds in the order of making: each needs only what comes before.
func kinds() []kind {
	none := func(any) string { return "" }
	settings := of(contivmodel.GlobalKind(), none, "name")
	settings.preset = func() any { return &contivmodel.Global{Name: contivmodel.GlobalName} }
	settings.kept = []string{"arpMode", "fwdMode", "networkInfraType"}
	gateway := of(contivmodel.AciGwKind(), none, "name")
	gateway.preset = func() any {
		return &contivmodel.AciGw{Name: contivmodel.AciGwName, EnforcePolicies: "yes", IncludeCommonTenant: "no"}
	}
	tenant := of(contivmodel.TenantKind(), func(t *contivmodel.Tenant) string { return t.TenantName }, "tenantName")
	tenant.all = true
	contracts := of(contivmodel.ExtContractsGroupKind(), func(c *contivmodel.ExtContractsGroup) string { return c.TenantName },
		"tenantName", "contractsGroupName")
	contracts.all = true
	network := of(contivmodel.NetworkKind(), func(n *contivmodel.Network) string { return n.TenantName }, "tenantName", "networkName")
	network.all = true
	group := of(contivmodel.EndpointGroupKind(), func(g *contivmodel.EndpointGroup) string { return g.TenantName }, "tenantName", "groupName")
	group.fixed = []string{"networkName", "ipPool", "cfgdTag"}
	rule := of(contivmodel.RuleKind(), func(r *contivmodel.Rule) string { return r.TenantName }, "tenantName", "policyName", "ruleId")
	rule.all = true
	return []kind{
		settings,
		gateway,
		tenant,
		of(contivmodel.NetprofileKind(), func(p *contivmodel.Netprofile) string { return p.TenantName }, "tenantName", "profileName"),
		of(contivmodel.PolicyKind(), func(p *contivmodel.Policy) string { return p.TenantName }, "tenantName", "policyName"),
		contracts,
		network,
		group,
		rule,
		of(contivmodel.AppProfileKind(), func(p *contivmodel.AppProfile) string { return p.TenantName }, "tenantName", "appProfileName"),
		of(contivmodel.ServiceLBKind(), func(s *contivmodel.ServiceLB) string { return s.TenantName }, "tenantName", "serviceName"),
		of(contivmodel.BgpKind(), none, "hostname"),
	}
}

// of makes the kind of a model kind. tenant takes *T, or any.
func of[T, O any, A any](k contivmodel.Kind[T, O], tenant func(A) string, names ...string) kind {
	return kind{
		typ:    k.Type,
		names:  names,
		preset: func() any { return new(T) },
		tenant: func(obj any) string { return tenant(obj.(A)) },
		check: func(obj any) (string, error) {
			v := obj.(*T)
			k.Strip(v)
			return k.Key(v), k.Validate(v)
		},
		list: func(ctx context.Context, c *client.Client) ([]any, error) {
			all, err := client.List(ctx, c, k)
			objs := make([]any, len(all))
			for i := range all {
				k.Strip(&all[i])
				objs[i] = &all[i]
			}
			return objs, err
		},
		put: func(ctx context.Context, c *client.Client, obj any) (client.Change, error) {
			_, ch, err := client.PutChange(ctx, c, k, obj.(*T))
			return ch, err
		},
	}
}

// kindOf finds a kind by its name in files.
func kindOf(typ string) (kind, error) {
	known := kinds()
	types := make([]string, len(known))
	for i, k := range known {
		if k.typ == typ {
			return k, nil
		}
		types[i] = k.typ
	}
	return kind{}, errs.New(errs.Invalid, "kind %q is none of %s", typ, strings.Join(types, ", "))
}
