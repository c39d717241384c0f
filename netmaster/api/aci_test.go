package api_test

import (
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// TestACIMode is about what differs when an ACI fabric, and not the hosts, keeps
// groups apart: every group has a VLAN of its own.
func TestACIMode(t *testing.T) {
	cfg := apitest.Config(apitest.Log(t))
	cfg.Infra = "aci"
	base := apitest.Start(t, memory.New(), cfg)
	play(t, base, []exchange{
		{"POST", networkPath + "default:vx/", `{"tenantName":"default","networkName":"vx","encap":"vxlan","subnet":"10.1.1.0/24"}`, 200, `~`},
		{"POST", networkPath + "default:vl/", `{"tenantName":"default","networkName":"vl","encap":"vlan","subnet":"10.1.2.0/24"}`, 200, `~`},
		{
			"POST", groupPath + "default:g/", `{"groupName":"g","networkName":"vx","tenantName":"default"}`, 500,
			`network type must be VLAN for ACI mode: network vx.default is vxlan`,
		},
		{"POST", groupPath + "default:g/", `{"groupName":"g","networkName":"vl","tenantName":"default"}`, 200, `~`},
		{"GET", inspect + "endpointGroups/default:g/", "", 200, `~"Oper":{"groupTag":"g.default","pktTag":2}}`},
		{"POST", create, ep("vl", "", "c1", ""), 500, `key not found: endpoint group default-group:default`},
		{"POST", groupPath + "default:default-group/", `{"groupName":"default-group","networkName":"vl","tenantName":"default"}`, 200, `~`},
		{"POST", create, ep("vl", "", "c1", ""), 200, `~"serviceName":"default-group","endpointGroupId":2,"endpointGroupKey":"default-group:default"`},
		{"GET", inspect + "globals/global/", "", 200, `~"numNetworks":4,"vlansInUse":"1-3","vxlansInUse":"1"}}`},
		{
			"POST", globalPath + "global/", `{"name":"global","networkInfraType":"default","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`, 500,
			`cannot change networkInfraType from "aci" to "default" while 2 endpoint groups exist`,
		},
		{"DELETE", groupPath + "default:g/", "", 200, `"default:g"`},
		{"GET", inspect + "globals/global/", "", 200, `~"numNetworks":3,"vlansInUse":"1, 3","vxlansInUse":"1"}}`},
	})
}
