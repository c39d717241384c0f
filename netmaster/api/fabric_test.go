package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/aci/acitest"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// shop is what the gateway is to know of the app profile of TestFabric.
const shop = `{"aci-gw-api-version":"v1.2",` +
	`"gw-config":{"key":"aciGw","enforcePolicies":"yes","includeCommonTenant":"no","name":"aciGw",` +
	`"pathBindings":"topology/pod-1/paths-101/pathep-[eth1/14]","physicalDomain":"dom1"},` +
	`"tenant":"default","app-prof":"shop",` +
	`"contract-defs":[{"name":"p1Expose","filter-info":[{"protocol":"icmp","servport":"0"}]},` +
	`{"name":"p1Frmweb","filter-info":[{"protocol":"tcp","servport":"80"},{"protocol":"udp","servport":"53"}]},` +
	`{"name":"p2Toapp","filter-info":[{"servport":"0"}]}],` +
	`"epgs":[{"name":"app","nw-name":"net1","gw-cidr":"10.1.1.254/24","vlan-tag":"2",` +
	`"contract-links":[{"link-kind":"CONSUME","contract-dn":"uni/tn-common/brc-default","contract-kind":"EXTERNAL"},` +
	`{"link-kind":"PROVIDE","contract-name":"p1Frmweb","contract-kind":"INTERNAL"},` +
	`{"link-kind":"PROVIDE","contract-name":"p1Expose","contract-kind":"INTERNAL"},` +
	`{"link-kind":"PROVIDE","contract-name":"p2Toapp","contract-kind":"INTERNAL"}]},` +
	`{"name":"web","nw-name":"net1","gw-cidr":"10.1.1.254/24","vlan-tag":"3",` +
	`"contract-links":[{"link-kind":"CONSUME","contract-name":"p2Toapp","contract-kind":"INTERNAL"},` +
	`{"link-kind":"CONSUME","contract-name":"p1Frmweb","contract-kind":"INTERNAL"}]}]}`

// TestFabric: in an ACI fabric the gateway has the app profiles, in the exact form it
// expects, through changes, its own outages and changes of the leader.
func TestFabric(t *testing.T) {
	gw := acitest.Start(t)
	cfg := apitest.Config(apitest.Log(t))
	cfg.Infra, cfg.ACIGateway = "aci", gw.URL
	store := memory.New()
	base := apitest.Start(t, store, cfg)
	rule := func(policy, id, rest string) exchange {
		return exchange{
			"POST", rulePath + "default:" + policy + ":" + id + "/",
			`{"tenantName":"default","policyName":"` + policy + `","ruleId":"` + id + `",` + rest + `}`, 200, `~`,
		}
	}
	play(t, base, []exchange{
		{"POST", gatewayPath + "aciGw/", `{"name":"aciGw","enforcePolicies":"yes","includeCommonTenant":"no","pathBindings":"topology/pod-1/paths-101/pathep-[eth1/14]","physicalDomain":"dom1"}`, 200, `~`},
		{"POST", networkPath + "default:net1/", `{"tenantName":"default","networkName":"net1","encap":"vlan","subnet":"10.1.1.0/24","gateway":"10.1.1.254"}`, 200, `~`},
		{"POST", contractsPath + "default:ext/", `{"tenantName":"default","contractsGroupName":"ext","contractsType":"consumed","contracts":["uni/tn-common/brc-default"]}`, 200, `~`},
		{"POST", policyPath + "default:p1/", `{"tenantName":"default","policyName":"p1"}`, 200, `~`},
		{"POST", policyPath + "default:p2/", `{"tenantName":"default","policyName":"p2"}`, 200, `~`},
		{"POST", groupPath + "default:app/", `{"groupName":"app","networkName":"net1","tenantName":"default","policies":["p1"],"extContractsGrps":["ext"]}`, 200, `~`},
		{"POST", groupPath + "default:web/", `{"groupName":"web","networkName":"net1","tenantName":"default","policies":["p2"]}`, 200, `~`},
		rule("p1", "1", `"priority":1,"direction":"in","action":"allow","protocol":"tcp","port":80,"fromEndpointGroup":"web"`),
		rule("p1", "2", `"priority":1,"direction":"in","action":"allow","protocol":"udp","port":53,"fromEndpointGroup":"web"`),
		rule("p1", "3", `"priority":1,"direction":"in","action":"allow","protocol":"icmp"`),
		rule("p1", "4", `"priority":1,"direction":"in","action":"deny","protocol":"tcp","port":22`),
		rule("p2", "1", `"priority":1,"direction":"out","action":"allow","toEndpointGroup":"app"`),
	})
	if calls := gw.Calls(); calls != "" {
		t.Errorf("without app profiles the gateway was called: %s", calls)
	}

	create := exchange{"POST", appPath + "default:shop/", `{"tenantName":"default","appProfileName":"shop","endpointGroups":["web","app"]}`, 200, `~"appProfileName":"shop"`}
	play(t, base, []exchange{create})
	if diff := cmp.Diff(shop, gw.Profile("default:shop")); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	play(t, base, []exchange{create, {"POST", policyPath + "default:p3/", `{"tenantName":"default","policyName":"p3"}`, 200, `~`}, rule("p3", "1", `"priority":1,"direction":"in","action":"allow"`)})
	if calls := gw.Calls(); calls != "createAppProf default:shop" {
		t.Errorf("calls: %s; want no more than one creation", calls)
	}

	// What the profile is made of changes it; what a fabric cannot tell is refused.
	play(t, base, []exchange{
		{"DELETE", rulePath + "default:p1:2/", "", 200, `"default:p1:2"`},
		{
			"POST", rulePath + "default:p1:5/", `{"tenantName":"default","policyName":"p1","ruleId":"5","priority":1,"direction":"in","action":"allow","fromIpAddress":"10.9.9.9"}`, 500,
			`rule default:p1:5 names 10.9.9.9: an ACI fabric knows no addresses and networks in rules, expected groups, protocol and port only`,
		},
	})
	if calls := gw.Calls(); calls != "deleteAppProf default:shop, createAppProf default:shop" {
		t.Errorf("calls: %s", calls)
	}
	if want := strings.Replace(shop, `,{"protocol":"udp","servport":"53"}`, "", 1); gw.Profile("default:shop") != want {
		t.Errorf("profile without the rule: %s", gw.Profile("default:shop"))
	}

	// A refused profile is not created; a refused change stays, and is told later.
	gw.Refuse("no such domain")
	play(t, base, []exchange{
		{
			"POST", appPath + "default:other/", `{"tenantName":"default","appProfileName":"other","endpointGroups":["web"]}`, 500,
			`createAppProf default:other at the ACI gateway ` + strings.TrimSuffix(gw.URL, "/") + `: the gateway answers "failed": no such domain`,
		},
		{"GET", appPath + "default:other/", "", 500, `appProfile not found`},
		{"PUT", appPath + "default:shop/", `{"tenantName":"default","appProfileName":"shop","endpointGroups":["web"]}`, 500, `~the change is kept and the gateway will be told again`},
		{"GET", appPath + "default:shop/", "", 200, `~"endpointGroups":["web"]`},
	})
	gw.Refuse("")
	gw.Await("default:shop", func(text string) bool {
		return strings.Contains(text, `"name":"web"`) && !strings.Contains(text, `"name":"app"`)
	})

	// The next leader knows what the gateway has, and carries out what could not be said.
	gw.SetDown(true)
	play(t, base, []exchange{{"DELETE", appPath + "default:shop/", "", 200, `"default:shop"`}})
	gw.Calls()
	gw.SetDown(false)
	base = apitest.Start(t, store, cfg)
	gw.Await("default:shop", func(text string) bool { return text == "" })
	play(t, base, []exchange{create})
	apitest.Start(t, store, cfg)
	if !strings.Contains(gw.Profile("default:shop"), `"name":"app"`) {
		t.Errorf("profile after a change of leader: %s", gw.Profile("default:shop"))
	}
}

// TestGatewayUnreachable: with the gateway away nothing else suffers, and an app profile is
// refused with the reason.
func TestGatewayUnreachable(t *testing.T) {
	gw := acitest.Start(t)
	gw.SetDown(true)
	cfg := apitest.Config(apitest.Log(t))
	cfg.Infra, cfg.ACIGateway = "aci", gw.URL
	base := apitest.Start(t, memory.New(), cfg)
	play(t, base, []exchange{
		{"POST", networkPath + "default:net1/", `{"tenantName":"default","networkName":"net1","encap":"vlan","subnet":"10.1.1.0/24"}`, 200, `~`},
		{"POST", groupPath + "default:g/", `{"groupName":"g","networkName":"net1","tenantName":"default"}`, 200, `~`},
		{"POST", appPath + "default:a/", `{"tenantName":"default","appProfileName":"a","endpointGroups":["g"]}`, 503, `~the gateway does not answer`},
		{"GET", appPath, "", 200, `[]`},
	})
}
