package contivmodel

import "github.com/contiv/netplugin/utils/errs"

// ExtContractsGroup is a set of contracts of an ACI fabric that groups provide or
// consume.
type ExtContractsGroup struct {
	Key                string                    `json:"key"`
	Contracts          []string                  `json:"contracts,omitempty"` // distinguished names
	ContractsGroupName string                    `json:"contractsGroupName,omitempty"`
	ContractsType      string                    `json:"contractsType,omitempty"` // provided | consumed
	TenantName         string                    `json:"tenantName,omitempty"`
	LinkSets           ExtContractsGroupLinkSets `json:"link-sets"`
}

// Values of contractsType.
const (
	ContractsProvided = "provided"
	ContractsConsumed = "consumed"
)

// ExtContractsGroupLinkSets are the objects that use a contracts group.
type ExtContractsGroupLinkSets struct {
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
}

// ExtContractsGroupKind describes external contracts groups; the key is
// tenantName:contractsGroupName.
func ExtContractsGroupKind() Kind[ExtContractsGroup, NoOper] {
	return Kind[ExtContractsGroup, NoOper]{
		Type:       "extContractsGroup",
		Collection: "extContractsGroups",
		key:        func(g *ExtContractsGroup) *string { return &g.Key },
		ident:      func(g *ExtContractsGroup) string { return g.TenantName + ":" + g.ContractsGroupName },
		unlink:     func(g *ExtContractsGroup) { g.LinkSets = ExtContractsGroupLinkSets{} },
		check: func(g *ExtContractsGroup, c *checker) {
			c.name("contractsGroupName", g.ContractsGroupName, 64)
			c.name("tenantName", g.TenantName, 64)
			if c.err == nil && g.ContractsType != ContractsProvided && g.ContractsType != ContractsConsumed {
				c.err = errs.New(errs.Invalid, "contractsType %q is not valid: expected provided or consumed", g.ContractsType)
			}
		},
	}
}
