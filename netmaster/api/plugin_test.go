package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

const (
	create = masterapi.PathCreateEndpoint
	del    = masterapi.PathDeleteEndpoint
	alloc  = masterapi.PathAllocAddress
	rel    = masterapi.PathReleaseAddress
	update = masterapi.PathUpdateEndpoint
)

// ep is the body of a createEndpoint call.
func ep(net, group, container, addr string) string {
	return `{"TenantName":"default","NetworkName":"` + net + `","EndpointID":"` + container + `","EPCommonName":"name-` + container +
		`","ConfigEP":{"Container":"` + container + `","Host":"host1","IPAddress":"` + addr + `","ServiceName":"` + group + `"}}`
}

func gone(net, container string) string {
	return `{"TenantName":"default","NetworkName":"` + net + `","EndpointID":"` + container + `"}`
}

func TestEndpoints(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	c1 := `{"EndpointConfig":{"id":"net1.default-c1","netID":"net1.default","endpointID":"c1","serviceName":"web","endpointGroupId":1,` +
		`"endpointGroupKey":"web:default","ipAddress":"10.1.1.1","ipv6Address":"2001:db8::1","macAddress":"02:02:0a:01:01:01","homingHost":"host1",` +
		`"intfName":"","vtepIP":"","labels":null,"containerId":"","epCommonName":"name-c1"}}`
	play(t, base, []exchange{
		{"POST", networkPath + "default:net1/", `{"tenantName":"default","networkName":"net1","encap":"vxlan","subnet":"10.1.1.0/29",` +
			`"gateway":"10.1.1.6","ipv6Subnet":"2001:db8::/124","ipv6Gateway":"2001:db8::2"}`, 200, `~net1`},
		{"POST", groupPath + "default:web/", `{"groupName":"web","networkName":"net1","tenantName":"default"}`, 200, `~web`},
		{"POST", create, ep("net1", "web", "c1", ""), 200, c1},
		{"POST", create, ep("net1", "", "c1", "10.1.1.5"), 200, c1}, // exists: unchanged
		{"POST", create, ep("net2", "", "c1", ""), 500, `key not found: network net2.default`},
		{"POST", create, ep("net1", "nobody", "c2", ""), 500, `key not found: endpoint group nobody:default`},
		{"POST", create, ep("net1", "", "c2", "10.1.1.1"), 500, `Address already in use: 10.1.1.1 of network net1.default belongs to endpoint/net1.default-c1`},
		{"POST", create, ep("net1", "", "c2", "10.1.1.6"), 500, `Address already in use: 10.1.1.6 of network net1.default belongs to gateway`},
		{"POST", create, ep("net1", "", "c2", "10.1.1.7"), 500, `~requested address is out of range: 10.1.1.7`},
		{"POST", create, ep("net1", "", "c2", "10.1.2.1"), 500, `~requested address is out of range: 10.1.2.1`},
		{"POST", create, ep("net1", "", "c2", "x"), 500, `"x" is no IP address`},
		{"POST", create, ep("net1", "", "c 2", ""), 500, `~ConfigEP.Container "c 2" is no id`},
		{"POST", create, ep("net1", "", "c2", "10.1.1.5/29"), 200, `~"ipAddress":"10.1.1.5","ipv6Address":"2001:db8::3","macAddress":"02:02:0a:01:01:05"`},
		{"GET", inspect + "networks/default:net1/", "", 200, `~"Oper":{"allocatedAddressesCount":2,"allocatedIPAddresses":"10.1.1.1, 10.1.1.5-10.1.1.6",` +
			`"availableIPAddresses":"10.1.1.2-10.1.1.4","endpoints":[{"containerName":"name-c1","endpointGroupId":1,"endpointGroupKey":"web:default","endpointID":"c1",` +
			`"homingHost":"host1","ipAddress":["10.1.1.1","2001:db8::1"],"labels":"map[]","macAddress":"02:02:0a:01:01:01","network":"net1.default","serviceName":"web"},`},
		{"GET", inspect + "endpointGroups/default:web/", "", 200, `~"groupTag":"web.default","numEndpoints":1,"pktTag":1}}`},
		{"DELETE", networkPath + "default:net1/", "", 500, `cannot delete network default:net1: it has endpoint groups: web`},
		{"DELETE", groupPath + "default:web/", "", 500, `EPG web has active endpoints: net1.default-c1 on host host1`},
		{"POST", update, `{"IPAddress":"10.1.1.1","ContainerID":"723e","Labels":{"k2":"v2","k1":"v1"},"Tenant":"default","Network":"web","Event":"start",` +
			`"EndpointID":"c1","EPCommonName":"/web"}`, 200, `{"IPAddress":"10.1.1.1"}`},
		{"POST", update, `{"ContainerID":"nobody","Event":"die"}`, 200, `null`},
		{"POST", update, `{"Tenant":"default","Network":"x","Event":"start","EndpointID":"y"}`, 200, `{"IPAddress":""}`},
		{"GET", inspect + "endpoints/723/", "", 200, `{"Oper":{"key":"723","containerID":"723e","containerName":"/web","endpointGroupId":1,` +
			`"endpointGroupKey":"web:default","endpointID":"c1","homingHost":"host1","ipAddress":["10.1.1.1","2001:db8::1"],"labels":"map[k1:v1 k2:v2]",` +
			`"macAddress":"02:02:0a:01:01:01","network":"net1.default","serviceName":"web"}}`},
		{"POST", del, gone("net1", "c1"), 200, `~"ipAddress":"10.1.1.1"`},
		{"POST", del, gone("net1", "c1"), 500, `key not found: endpoint net1.default-c1`},
		{"DELETE", groupPath + "default:web/", "", 200, `"default:web"`},
		{"DELETE", networkPath + "default:net1/", "", 500, `Network has active endpoints, cannot delete default:net1: net1.default-c2 on host host1`},
		{"POST", create, ep("net1", "", "c3", ""), 200, `~"ipAddress":"10.1.1.1","ipv6Address":"2001:db8::4"`},
		{"POST", create, ep("net1", "", "c4", ""), 200, `~"ipAddress":"10.1.1.2"`},
		{"POST", create, ep("net1", "", "c5", ""), 200, `~"ipAddress":"10.1.1.3"`},
		{"POST", create, ep("net1", "", "c6", ""), 200, `~"ipAddress":"10.1.1.4"`},
		{"POST", create, ep("net1", "", "c7", ""), 500, `auto allocation failed - address exhaustion in subnet 10.1.1.0/29 of network net1.default`},
	})
	if kvs, _, err := store.List(t.Context(), state.IPAMRoot); err != nil || len(kvs) != 5+5+2 {
		t.Errorf("%d claims, %v; want 5 of each family and 2 gateways", len(kvs), err)
	}
}

func TestAddresses(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	group := func(name, pool string, status int, want string) exchange {
		return exchange{"POST", groupPath + "default:" + name + "/", `{"groupName":"` + name + `","networkName":"n","tenantName":"default","ipPool":"` + pool + `"}`, status, want}
	}
	play(t, base, []exchange{
		{"POST", networkPath + "default:n/", `{"tenantName":"default","networkName":"n","encap":"vlan","subnet":"10.1.1.0/24","gateway":"10.1.1.254","ipv6Subnet":"2001:db8::/64"}`, 200, `~`},
		{"POST", alloc, `{"NetworkID":"n.default","AddressPool":"10.1.1.0/24"}`, 200, `{"NetworkID":"n.default","IPv4Address":"10.1.1.1/24"}`},
		{"POST", alloc, `{"AddressPool":"10.1.1.77/24"}`, 200, `{"NetworkID":"","IPv4Address":"10.1.1.2/24"}`},
		{"POST", alloc, `{"AddressPool":"10.1.1.0/24:default"}`, 200, `{"NetworkID":"","IPv4Address":"10.1.1.3/24"}`},
		{"POST", alloc, `{"AddressPool":"2001:db8::/64"}`, 200, `{"NetworkID":"","IPv4Address":"2001:db8::1/64"}`},
		{"POST", alloc, `{"AddressPool":"2001:db8::/64:default"}`, 200, `{"NetworkID":"","IPv4Address":"2001:db8::2/64"}`},
		{"POST", alloc, `{"AddressPool":"10.1.1.0/24:blue"}`, 500, `~network not found`},
		{"POST", alloc, `{"AddressPool":"10.1.1.0"}`, 500, `AddressPool "10.1.1.0" is no subnet: expected ADDRESS/LENGTH`},
		{"POST", alloc, `{"NetworkID":"n.default","PreferredIPv4Address":"10.1.1.9"}`, 200, `{"NetworkID":"n.default","IPv4Address":"10.1.1.9/24"}`},
		{"POST", alloc, `{"NetworkID":"n.default","PreferredIPv4Address":"10.1.1.9"}`, 500, `~Address already in use: 10.1.1.9`},
		{"POST", alloc, `{"NetworkID":"n.default","PreferredIPv4Address":"10.1.1.254"}`, 500, `~Address already in use: 10.1.1.254`},
		{"POST", create, ep("n", "", "c9", "10.1.1.9"), 200, `~"ipAddress":"10.1.1.9","ipv6Address":"2001:db8::3"`},
		{"POST", create, ep("n", "", "c10", "10.1.1.9"), 500, `~Address already in use`},
		{"POST", rel, `{"NetworkID":"n.default|10.1.1.0/24","IPv4Address":"10.1.1.9"}`, 200, `{"Status":"success"}`}, // belongs to c9: stays
		{"POST", rel, `{"NetworkID":"n.default|10.1.1.0/24","IPv4Address":"10.1.1.254"}`, 200, `{"Status":"success"}`},
		{"POST", rel, `{"NetworkID":"n.default","IPv4Address":"10.1.1.1"}`, 200, `{"Status":"success"}`},
		{"POST", rel, `{"NetworkID":"n.default","IPv4Address":"10.1.1.1"}`, 200, `{"Status":"success"}`},
		{"POST", rel, `{"NetworkID":"gone.default","IPv4Address":"10.1.1.1"}`, 200, `{"Status":"success"}`},
		{"POST", rel, `{"NetworkID":"n.default","IPv4Address":"z"}`, 500, `IPv4Address "z" is no IP address`},
		{"GET", inspect + "networks/default:n/", "", 200, `~"Oper":{"allocatedAddressesCount":3,"allocatedIPAddresses":"10.1.1.2-10.1.1.3, 10.1.1.9, 10.1.1.254"`},
		group("g1", "10.1.1.100-10.1.1.101", 200, `~"ipPool":"10.1.1.100-10.1.1.101"`),
		group("g2", "10.1.1.101-10.1.1.102", 500, `~ip address 10.1.1.101 is not available`),
		group("g2", "10.1.1.9-10.1.1.11", 500, `~ip address 10.1.1.9 is not available`),
		group("g2", "10.1.1.250-10.1.1.254", 500, `~ip address 10.1.1.254 is not available`),
		group("g2", "10.1.2.1-10.1.2.5", 500, `~ip address 10.1.2.1 is not available`),
		group("g2", "10.1.1.20-10.1.1.10", 500, `~runs backwards`),
		group("g2", "2001:db8::1-2001:db8::2", 500, `ipPool string invalid format`),
		group("g2", "10.1.1.120", 200, `~"ipPool":"10.1.1.120"`),
		group("g2", "10.1.1.121", 500, `~cannot change the ip pool`),
		{"POST", create, ep("n", "g1", "p1", ""), 200, `~"ipAddress":"10.1.1.100"`},
		{"POST", create, ep("n", "", "p2", "10.1.1.101"), 500, `~10.1.1.101 is in the pool 10.1.1.100-10.1.1.101 of group/g1:default`},
		{"POST", create, ep("n", "g1", "p2", "10.1.1.50"), 500, `~10.1.1.50 is not in the pool of group/g1:default`},
		{"POST", alloc, `{"NetworkID":"n:g1.default"}`, 200, `{"NetworkID":"n:g1.default","IPv4Address":"10.1.1.101/24"}`},
		{"POST", create, ep("n", "g1", "p2", ""), 500, `auto allocation failed - address exhaustion in pool 10.1.1.100-10.1.1.101 of network n.default`},
		{"POST", create, ep("n", "g1", "p2", "10.1.1.101"), 200, `~"ipAddress":"10.1.1.101"`},
		{"POST", create, ep("n", "g2", "p3", ""), 200, `~"ipAddress":"10.1.1.120"`},
		{"GET", inspect + "endpointGroups/default:g1/", "", 200, `~"Oper":{"allocatedIPAddresses":"10.1.1.100-10.1.1.101","endpoints":`},
		{"POST", del, gone("n", "p1"), 200, `~p1`},
		{"GET", inspect + "endpointGroups/default:g1/", "", 200, `~"Oper":{"allocatedIPAddresses":"10.1.1.101","availableIPAddresses":"10.1.1.100","endpoints":`},
		{"GET", inspect + "networks/default:n/", "", 200, `~"allocatedIPAddresses":"10.1.1.2-10.1.1.3, 10.1.1.9, 10.1.1.100-10.1.1.101, 10.1.1.120, 10.1.1.254"`},
		{"POST", del, gone("n", "p2"), 200, `~p2`},
		{"DELETE", groupPath + "default:g1/", "", 200, `"default:g1"`},
		{"GET", inspect + "networks/default:n/", "", 200, `~"allocatedIPAddresses":"10.1.1.2-10.1.1.3, 10.1.1.9, 10.1.1.120, 10.1.1.254"`},
		group("g3", "10.1.1.100-10.1.1.101", 200, `~`),
	})
}

func TestInfraNetworks(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	net := exchange{"POST", networkPath + "default:infra/", `{"tenantName":"default","networkName":"infra","nwType":"infra","encap":"vxlan","subnet":"10.1.1.0/24","gateway":"10.1.1.1"}`, 200, `~`}
	host := `{"TenantName":"default","NetworkName":"infra","ConfigEP":{"Container":"host1","Host":"host1"}}`
	native := `{"TenantName":"default","NetworkName":"infra","ConfigEP":{"Host":"host1"}}`
	play(t, base, []exchange{
		net,
		{"POST", create, host, 200, `~"id":"infra.default-host1","netID":"infra.default","endpointID":"host1"`},
		{"POST", create, native, 200, `~"id":"host1-native-intf"`},
		{"POST", create, `{"TenantName":"default","NetworkName":"infra"}`, 500, `ConfigEP names neither Container nor Host`},
		{
			"POST", create, `{"TenantName":"default","NetworkName":"infra","ConfigEP":{"Container":"x","IPv6Address":"2001:db8::1"}}`, 500,
			`requested address is out of range: 2001:db8::1, network infra.default has no IPv6 subnet`,
		},
		{"DELETE", networkPath + "default:infra/", "", 200, `"default:infra"`},
		net, // its addresses are all free again
		{"GET", inspect + "networks/default:infra/", "", 200, `~"allocatedIPAddresses":"10.1.1.1","availableIPAddresses":"10.1.1.2-10.1.1.254"`},
		{"POST", del, gone("infra", "host1"), 500, `~key not found: endpoint infra.default-host1`}, // gone with its network
	})
	// The claims that are left are the new network's own.
	if kvs, _, err := store.List(t.Context(), state.IPAMRoot); err != nil || len(kvs) != 1 {
		t.Errorf("%d claims, %v; want the gateway's", len(kvs), err)
	}
}

// TestRevision checks that the header of an answer names the revision at which the
// store has what was answered.
func TestRevision(t *testing.T) {
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	play(t, base, []exchange{{"POST", networkPath + "default:n/", `{"tenantName":"default","networkName":"n","encap":"vlan","subnet":"10.1.1.0/24"}`, 200, `~`}})
	revision := func(path, body string) int64 {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		rev, err := strconv.ParseInt(resp.Header.Get(masterapi.RevisionHeader), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return rev
	}
	rev := revision(create, ep("n", "", "c1", ""))
	kv, err := store.Get(t.Context(), state.EndpointRoot+"n.default-c1")
	if err != nil || kv.ModRevision != rev {
		t.Errorf("revision %d for a record of revision %d, %v", rev, kv.ModRevision, err)
	}
	revision(create, ep("n", "", "c2", ""))
	if again := revision(create, ep("n", "", "c1", "")); again != rev {
		t.Errorf("revision %d when asked again, %d before", again, rev)
	}
	if end := revision(del, gone("n", "c1")); end <= rev {
		t.Errorf("revision %d of the end, %d of the beginning", end, rev)
	}
}
