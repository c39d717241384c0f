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

// ExtContractsGroupType names the kind in links, store keys and errors.
const ExtContractsGroupType = "extContractsGroup"

// ExtContractsGroupKind describes external contracts groups; the key is
// tenantName:contractsGroupName.
func ExtContractsGroupKind() Kind[ExtContractsGroup, NoOper] {
	return Kind[ExtContractsGroup, NoOper]{
		Type: ExtContractsGroupType, Collection: "extContractsGroups", names: []string{tenantName, "contractsGroupName"}, immutable: true,
		key:    func(g *ExtContractsGroup) *string { return &g.Key },
		unlink: func(g *ExtContractsGroup) { g.LinkSets = ExtContractsGroupLinkSets{} },
		members: []member[ExtContractsGroup]{
			{
				Field: Field{Name: "contracts", Text: "distinguished names of contracts"},
				list:  func(g *ExtContractsGroup) *[]string { return &g.Contracts },
			},
			name(member[ExtContractsGroup]{
				Field: Field{Name: "contractsGroupName", Text: "the contracts group's name"},
				text:  func(g *ExtContractsGroup) *string { return &g.ContractsGroupName },
			}, 64),
			{
				Field: Field{
					Name: "contractsType", Text: "what groups do with the contracts", Required: true,
					Values: []string{ContractsProvided, ContractsConsumed},
				},
				text: func(g *ExtContractsGroup) *string { return &g.ContractsType }, parse: parseContractsType,
			},
			tenantOf(func(g *ExtContractsGroup) *string { return &g.TenantName }, nil),
		},
	}
}

func parseContractsType(s string) (string, error) {
	if s != ContractsProvided && s != ContractsConsumed {
		return "", errs.New(errs.Invalid, "contractsType %q is not valid: expected provided or consumed", s)
	}
	return s, nil
}
