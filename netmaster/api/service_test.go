package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

const servicePath = "/api/v1/serviceLBs/"

// providersOf reads the provider list of a service of tenant default; "-" if there is
// none. The service's record must name the same addresses.
func providersOf(t *testing.T, store objdb.Store, name string) string {
	t.Helper()
	id := state.ServiceID(name, "default")
	kv, err := store.Get(t.Context(), state.ServiceLBRoot+id)
	if err != nil {
		t.Fatal(err)
	}
	var s state.ServiceLB
	if err := json.Unmarshal(kv.Value, &s); err != nil {
		t.Fatal(err)
	}
	kv, err = store.Get(t.Context(), state.ProviderRoot+id)
	if err != nil {
		if len(s.Providers) > 0 {
			t.Errorf("service %s has %d providers and no list", name, len(s.Providers))
		}
		return "-"
	}
	var l state.ProviderList
	if err := json.Unmarshal(kv.Value, &l); err != nil {
		t.Fatal(err)
	}
	for _, addr := range l.Providers {
		if p, ok := s.Providers[addr+":default"]; !ok || p.IPAddress != addr {
			t.Errorf("service %s lists %s, its record has %+v", name, addr, p)
		}
	}
	if len(l.Providers) != len(s.Providers) {
		t.Errorf("service %s has %d providers and lists %d", name, len(s.Providers), len(l.Providers))
	}
	return strings.Join(l.Providers, " ")
}

// event is a container event as agents report it.
func event(kind, network, container, labels string) exchange {
	return exchange{
		"POST", "/plugin/updateEndpoint", `{"Tenant":"default","Network":"` + network + `","EndpointID":"` + container + `","ContainerID":"id-` + container +
			`","Event":"` + kind + `","Labels":{` + labels + `}}`, 200, `{"IPAddress":""}`,
	}
}

func container(network, name string) exchange {
	return exchange{
		"POST", "/plugin/createEndpoint",
		`{"TenantName":"default","NetworkName":"` + network + `","ConfigEP":{"Container":"` + name + `","Host":"h1"}}`, 200, `~"endpointID":"` + name + `"`,
	}
}

func TestServices(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	svc := func(name, fields string) exchange {
		return put(servicePath, name, `"serviceName":"`+name+`","networkName":"n1"`+fields)
	}
	full := `,"ports":["80:8080:tcp"],"selectors":["app=web"]`
	vip := func(name, want string) exchange {
		return exchange{"GET", inspect + "serviceLBs/default:" + name + "/", "", 200, `~"serviceVip":"` + want + `"`}
	}
	play(t, base, []exchange{
		{"GET", "/services", "", 200, `[]`},
		network("n1", "10.1.1.0/24"), network("n2", "10.2.1.0/24"),
		refused(svc("s", `,"selectors":["app=web"]`), `~ports is empty`),
		refused(svc("s", `,"ports":["80:8080:TCP"]`), `~selectors is empty`),
		refused(svc("s", `,"ports":["80:8080:TCP","80"],"selectors":["a=b"]`), `~ports: "80" is not SERVICEPORT:PROVIDERPORT:PROTOCOL`),
		refused(svc("s", `,"ports":["0:8080:TCP"],"selectors":["a=b"]`), `~ports: "0:8080:TCP" is not`),
		refused(svc("s", `,"ports":["80:65536:TCP"],"selectors":["a=b"]`), `~ports: "80:65536:TCP" is not`),
		refused(svc("s", `,"ports":["80:8080:sctp"],"selectors":["a=b"]`), `~ports: "80:8080:sctp" is not`),
		refused(svc("s", `,"ports":["80:8080:TCP"],"selectors":["a"]`), `selectors: "a" is not KEY=VALUE`),
		refused(svc("s", `,"ports":["80:8080:TCP"],"selectors":["a=b=c"]`), `selectors: "a=b=c" is not KEY=VALUE`),
		refused(svc("s", full+`,"ipAddress":"10.9.9.9"`), `~10.9.9.9`),
		refused(svc("s", full+`,"ipAddress":"x"`), `ipAddress string invalid format`),
		refused(svc("s", full+`,"networkName":"n3"`), `Network not found: default:n3`),
		refused(exchange{"POST", servicePath + "red:s/", `{"tenantName":"red","serviceName":"s","networkName":"n1"` + full + `}`, 0, ""}, `Tenant not found: red`),
		container("n1", "c1"), container("n1", "c2"), container("n2", "c3"),
		event("start", "n1", "c1", `"app":"web","tier":"1"`),
		saying(svc("s", full), `{"key":"default:s","networkName":"n1","ports":["80:8080:TCP"],"selectors":["app=web"],"serviceName":"s","tenantName":"default",`+
			`"links":{"Network":{"type":"network","key":"default:n1"},"Tenant":{"type":"tenant","key":"default"}}}`),
		vip("s", "10.1.1.3"),
		svc("two", `,"ipAddress":"10.1.1.99","ports":["53:53:Udp"],"selectors":["app=web","tier=1"]`),
		vip("two", "10.1.1.99"),
		refused(svc("three", full+`,"ipAddress":"10.1.1.99"`), `~Address already in use: 10.1.1.99`),
	})
	check := func(when, s, two string) {
		t.Helper()
		if diff := cmp.Diff([]string{s, two}, []string{providersOf(t, store, "s"), providersOf(t, store, "two")}); diff != "" {
			t.Errorf("%s: providers (-want +got):\n%s", when, diff)
		}
	}
	check("labels before services, more of them than selectors", "10.1.1.1", "10.1.1.1")
	play(t, base, []exchange{
		event("start", "n1", "c2", `"app":"web"`),
		event("start", "n2", "c3", `"app":"db"`),
	})
	check("one selector of two", "10.1.1.1 10.1.1.2", "10.1.1.1")
	play(t, base, []exchange{event("start", "n2", "c3", `"app":"web"`)})
	check("another network, changed label", "10.1.1.1 10.1.1.2 10.2.1.1", "10.1.1.1")
	play(t, base, []exchange{
		{"GET", inspect + "serviceLBs/default:two/", "", 200, `~"Oper":{"numProviders":1,"providers":[{"containerID":"id-c1",`},
		{"GET", inspect + "serviceLBs/default:two/", "", 200, `~"serviceName":"two"}],"serviceVip":"10.1.1.99"}}`},
		{"GET", "/service/two:default", "", 200, `~[{"id":"two:default","servicename":"two","tenantname":"default","subnet":"n1","ports":["53:53:UDP"],` +
			`"selectors":{"app":"web","tier":"1"},"ipaddress":"10.1.1.99","providers":{"10.1.1.1:default":{"IPAddress":"10.1.1.1","ContainerID":"id-c1",` +
			`"Labels":{"app":"web","tier":"1"},"Tenant":"default","Network":"n1","Services":["two:default"],"Container":"c1","EpIDKey":"n1.default-c1"}}}]`},
		{"GET", "/service/none:default", "", 500, `service none:default not found`},
		{"GET", "/services", "", 200, `~[{"id":"s:default"`},
		{"POST", "/plugin/updateEndpoint", `{"ContainerID":"id-c1","Event":"die"}`, 200, `{"IPAddress":""}`},
		{"POST", "/plugin/updateEndpoint", `{"ContainerID":"nobody","Event":"die"}`, 200, `null`},
		{"POST", "/plugin/updateEndpoint", `{"ContainerID":"id-c2","Event":"pause"}`, 200, `{"IPAddress":""}`},
	})
	check("a container has died", "10.1.1.2 10.2.1.1", "")
	play(t, base, []exchange{
		{"POST", "/plugin/deleteEndpoint", `{"TenantName":"default","NetworkName":"n2","EndpointID":"c3"}`, 200, `~10.2.1.1`},
		event("start", "n1", "c1", `"app":"web","tier":"1"`),
	})
	check("an endpoint has gone, a container is back", "10.1.1.1 10.1.1.2", "10.1.1.1")

	// A change of network, or of the wanted address, changes the address; nothing else does.
	play(t, base, []exchange{
		svc("s", `,"ports":["81:8080:tcp"],"selectors":["app=web","tier=1"]`),
		vip("s", "10.1.1.3"),
		svc("s", full+`,"ipAddress":"10.1.1.50"`),
		vip("s", "10.1.1.50"),
		refused(svc("s", full+`,"ipAddress":"10.1.1.99"`), `~Address already in use`),
		vip("s", "10.1.1.50"),
		put(servicePath, "s", `"serviceName":"s","networkName":"n2"`+full),
		vip("s", "10.2.1.1"),
		{"GET", networkPath + "default:n1/", "", 200, `~"link-sets":{"Servicelbs":{"default:two":{"type":"serviceLB","key":"default:two"}}}`},
		{"GET", networkPath + "default:n2/", "", 200, `~"link-sets":{"Servicelbs":{"default:s":`},
		{"GET", inspect + "networks/default:n1/", "", 200, `~"allocatedAddressesCount":3,"allocatedIPAddresses":"10.1.1.1-10.1.1.2, 10.1.1.99"`},
	})
	check("after updates", "10.1.1.1 10.1.1.2", "10.1.1.1")

	// A new leader finds what the old one left, and puts right what somebody changed.
	txn := objdb.Txn{Then: []objdb.Op{
		objdb.Put(state.ProviderRoot+"s:default", []byte(`{"id":"s:default","ServiceName":"s:default","Providers":["10.9.9.9"]}`)),
		objdb.Delete(state.ServiceLBRoot + "two:default"),
	}}
	if _, err := store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	base = apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{vip("two", "10.1.1.99")})
	check("after a change of leader", "10.1.1.1 10.1.1.2", "10.1.1.1")
	play(t, base, []exchange{
		{"DELETE", networkPath + "default:n2/", "", 500, `cannot delete network default:n2: it has services: default:s`},
		{"GET", inspect + "tenants/default/", "", 200, `~"totalServicelbs":2`},
		remove(servicePath, "default:s"), remove(servicePath, "default:two"),
		{"GET", "/services", "", 200, `[]`},
		{"GET", inspect + "networks/default:n1/", "", 200, `~"allocatedAddressesCount":2,`},
		{"DELETE", servicePath + "default:s/", "", 500, `serviceLB not found`},
		remove(networkPath, "default:n2"),
	})
	for _, root := range []string{state.ServiceLBRoot, state.ProviderRoot} {
		if kvs, _, err := store.List(t.Context(), root); err != nil || len(kvs) > 0 {
			t.Errorf("%d records are left under %s, %v", len(kvs), root, err)
		}
	}
}
