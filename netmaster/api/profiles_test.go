package api_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

const (
	appPath       = "/api/v1/appProfiles/"
	contractsPath = "/api/v1/extContractsGroups/"
	bgpPath       = "/api/v1/Bgps/"
	gatewayPath   = "/api/v1/aciGws/"
)

func TestAppProfiles(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	app := func(name, groups string) exchange {
		return put(appPath, name, `"appProfileName":"`+name+`","endpointGroups":[`+groups+`]`)
	}
	appOf := func(name, want string) exchange {
		return exchange{"GET", groupPath + "default:" + name + "/", "", 200, `~"links":{"AppProfile":{` + want + `}`}
	}
	link := func(name string) string { return `"type":"appProfile","key":"default:` + name + `"` }
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"), group("web", ""), group("db", ""),
		refused(app("shop", `"web","nobody"`), `EndpointGroup default:nobody not found`),
		appOf("web", ``), // nothing has been linked
		refused(exchange{"POST", appPath + "red:shop/", `{"tenantName":"red","appProfileName":"shop"}`, 0, ""}, `Tenant not found: red`),
		saying(app("shop", `"web"`), `{"key":"default:shop","appProfileName":"shop","endpointGroups":["web"],"tenantName":"default",`+
			`"link-sets":{"EndpointGroups":{"default:web":{"type":"endpointGroup","key":"default:web"}}},"links":{"Tenant":{"type":"tenant","key":"default"}}}`),
		appOf("web", link("shop")),
		app("blog", `"web","db"`),
		appOf("web", link("blog")),
		app("shop", `"db"`), // dropped from one, still in the other
		appOf("web", link("blog")), appOf("db", link("shop")),
		remove(appPath, "default:shop"),
		appOf("db", link("blog")),
		{"DELETE", groupPath + "default:db/", "", 500, `cannot delete endpoint group default:db: it is in app profiles default:blog`},
		{"GET", inspect + "tenants/default/", "", 200, `~"AppProfiles":{"default:blog":`},
		{"GET", inspect + "tenants/default/", "", 200, `~"totalAppProfiles":1`},
		{"GET", inspect + "appProfiles/default:blog/", "", 200, `~{"Config":{"key":"default:blog"`},
		app("blog", ``),
		appOf("db", ``),
		remove(groupPath, "default:db"), remove(groupPath, "default:web"), remove(networkPath, "default:n1"),
		{"DELETE", tenantPath + "default/", "", 500, `cannot delete tenant default: it has 1 app profiles`},
		remove(appPath, "default:blog"),
		remove(tenantPath, "default"),
	})
}

func TestContracts(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	contracts := func(kind string) exchange {
		return put(contractsPath, "c1", `"contractsGroupName":"c1","contractsType":"`+kind+`","contracts":["uni/tn-common/brc-default"]`)
	}
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"),
		refused(contracts("both"), `contractsType "both" is not valid: expected provided or consumed`),
		refused(group("web", `,"extContractsGrps":["c1"]`), `External contracts group c1 not found`),
		saying(contracts("provided"), `{"key":"default:c1","contracts":["uni/tn-common/brc-default"],"contractsGroupName":"c1","contractsType":"provided",`+
			`"tenantName":"default","link-sets":{}}`),
		refused(contracts("provided"), `~external contracts update not supported`),
		saying(group("web", `,"extContractsGrps":["c1"]`), `~"link-sets":{"ExtContractsGrps":{"default:c1":{"type":"extContractsGroup","key":"default:c1"}}}`),
		{"GET", contractsPath + "default:c1/", "", 200, `~"link-sets":{"EndpointGroups":{"default:web":{"type":"endpointGroup","key":"default:web"}}}`},
		{"DELETE", contractsPath + "default:c1/", "", 500, `External contracts group is in-use: default:c1 by endpoint groups default:web`},
		group("web", ""),
		remove(groupPath, "default:web"), remove(networkPath, "default:n1"),
		{"DELETE", tenantPath + "default/", "", 500, `cannot delete tenant default: it has 1 external contracts groups`},
		remove(contractsPath, "default:c1"),
		remove(tenantPath, "default"),
	})
}

// register puts a service of a host into the registry.
func register(t *testing.T, store objdb.Store, service, addr, host string) {
	t.Helper()
	value := fmt.Sprintf(`{"ServiceName":%q,"TTL":10,"HostAddr":%q,"Port":9002,"Hostname":%q}`, service, addr, host)
	txn := objdb.Txn{Then: []objdb.Op{objdb.Put(state.ServiceRoot+service+"/"+addr+":9002", []byte(value))}}
	if _, err := store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
}

// agent serves what an agent would, on the loopback addresses, and returns its port.
func agent(t *testing.T, h http.HandlerFunc) int {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBgp(t *testing.T) {
	store := memory.New()
	status, answer := 200, `null`
	cfg := apitest.Config(apitest.Log(t))
	cfg.AgentPort = agent(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/inspect/bgp" {
			t.Errorf("the agent is asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})
	base := apitest.Start(t, store, cfg)
	bgp := func(fields string) exchange {
		return exchange{"POST", bgpPath + "h1/", `{"hostname":"h1",` + fields + `}`, 200, `~"key":"h1"`}
	}
	oper := func(status int, want string) exchange {
		return exchange{"GET", inspect + "Bgps/h1/", "", status, want}
	}
	play(t, base, []exchange{
		refused(bgp(`"as":"1"`), `routerip string invalid format`),
		refused(bgp(`"routerip":"10.1.1.1"`), `routerip string invalid format`),
		refused(bgp(`"routerip":"10.1.1.1-300/24"`), `routerip string invalid format`),
		refused(bgp(`"routerip":"10.1.1.1/24","neighbor":"x"`), `neighbor string invalid format`),
		refused(exchange{"GET", bgpPath + "h1/", "", 0, ""}, `Bgp not found`),
		saying(bgp(`"routerip":"10.1.1.1/24","as":"65001","neighbor-as":"65002","neighbor":"10.1.1.2"`),
			`{"key":"h1","as":"65001","hostname":"h1","neighbor":"10.1.1.2","neighbor-as":"65002","routerip":"10.1.1.1/24"}`),
		oper(500, `inspect bgp of host h1: host not found: no agent of host "h1" is registered`),
		{
			"POST", globalPath + "global/", `{"name":"global","fwdMode":"bridge","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`, 500,
			`~please delete existing Bgp configs`,
		},
	})
	kv, err := store.Get(t.Context(), state.BgpRoot+"h1")
	want := `{"id":"h1","hostname":"h1","router-ip":"10.1.1.1/24","as":"65001","neighbor-as":"65002","neighbor":"10.1.1.2"}`
	if err != nil || cmp.Diff(want, string(kv.Value)) != "" {
		t.Errorf("record %s, %v; want %s", kv.Value, err, want)
	}
	register(t, store, "netplugin", "127.0.0.1", "h1")
	play(t, base, []exchange{oper(200, `~"Oper":{}}`)})
	answer = `{"peers":[],"dsts":["10.1.1.5/32"]}`
	play(t, base, []exchange{oper(200, `~"Oper":{"numRoutes":1,"routes":["10.1.1.5/32"]}}`)})
	answer = `{"peers":[{"State":{"SessionState":"established","AdminState":"ADMIN_STATE_UP","x":1}}]}`
	play(t, base, []exchange{oper(200, `~"Oper":{"adminStatus":"ADMIN_STATE_UP","neighborStatus":"established"}}`)})
	status, answer = 500, "no speaker\n"
	play(t, base, []exchange{oper(500, `inspect bgp of host h1: no speaker`)})
	status = 403
	play(t, base, []exchange{oper(500, `~access denied`)})
	status = 404
	play(t, base, []exchange{oper(500, `~page not found`), bgp(`"routerip":"10.1.1.1/24"`), remove(bgpPath, "h1")})
	if _, err := store.Get(t.Context(), state.BgpRoot+"h1"); err == nil {
		t.Error("the record is still there")
	}
	aci := apitest.Config(apitest.Log(t))
	aci.Infra = "aci"
	play(t, apitest.Start(t, memory.New(), aci), []exchange{refused(bgp(`"routerip":"10.1.1.1/24"`), `~not supported in ACI fabric mode`)})
}

func TestAciGw(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	gateway := func(fields string) exchange {
		return exchange{"POST", gatewayPath + "aciGw/", `{"name":"aciGw","enforcePolicies":"yes","includeCommonTenant":"no",` + fields + `}`, 200, `~"key":"aciGw"`}
	}
	play(t, base, []exchange{
		refused(gateway(`"physicalDomain":""`), `physicalDomain string invalid format`),
		refused(gateway(`"physicalDomain":"d","enforcePolicies":"maybe"`), `enforcePolicies string invalid format`),
		refused(gateway(`"physicalDomain":"d","nodeBindings":"topology/pod-1/node-12345"`), `nodeBindings string invalid format`),
		refused(gateway(`"physicalDomain":"d","pathBindings":"topology/pod-1/paths-1/pathep-[eth1/141]"`), `pathBindings string invalid format`),
		refused(exchange{"POST", gatewayPath + "other/", `{"name":"other"}`, 0, ""}, `enforcePolicies string invalid format`),
		gateway(`"physicalDomain":"d","nodeBindings":"topology/pod-1/node-101,topology/pod-1/node-102",` +
			`"pathBindings":"topology/pod-1/paths-101/pathep-[eth1/14]"`),
		saying(gateway(`"physicalDomain":"dom1"`), `{"key":"aciGw","enforcePolicies":"yes","includeCommonTenant":"no","name":"aciGw","physicalDomain":"dom1"}`),
		put(appPath, "shop", `"appProfileName":"shop"`),
		{"GET", inspect + "aciGws/aciGw/", "", 200, `~"Oper":{"numAppProfiles":1}}`},
		{"DELETE", gatewayPath + "aciGw/", "", 500, `~1 App-Profiles found`},
		remove(appPath, "default:shop"),
		remove(gatewayPath, "aciGw"),
	})
}

func TestVolumes(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	for path, name := range map[string]string{"volumes": "volume", "volumeProfiles": "volumeProfile"} {
		one := "/api/v1/" + path + "/default:v/"
		play(t, base, []exchange{
			{"GET", "/api/v1/" + path + "/", "", 200, `[]`},
			{"POST", one, `{"tenantName":"default","` + name + `Name":"v"}`, 500, `Invalid object type`},
			{"PUT", one, `{"tenantName":"default","` + name + `Name":"w"}`, 500, `Invalid Key`},
			{"GET", one, "", 500, name + ` not found`},
			{"DELETE", one, "", 500, name + ` not found`},
			{"GET", inspect + path + "/default:v/", "", 500, name + ` not found`},
		})
	}
}
