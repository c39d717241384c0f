package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// send makes one request and returns status and body without its final newline.
func send(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // no redirects
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	kind := resp.Header.Get("Content-Type")
	if resp.StatusCode == 200 && kind != "application/json" && kind != "application/x-ndjson" || resp.StatusCode >= 400 && kind != "text/plain; charset=utf-8" {
		t.Errorf("%s %s: status %d with content type %q", method, url, resp.StatusCode, kind)
	}
	if !strings.HasSuffix(string(text), "\n") && resp.StatusCode != 301 {
		t.Errorf("%s %s: body %q does not end in a newline", method, url, text)
	}
	return resp.StatusCode, strings.TrimSuffix(string(text), "\n")
}

// exchange is one request of a session and what is expected of its answer.
type exchange struct {
	method, path, body string
	status             int
	want               string // the whole body, or with a leading ~ a part of it
}

func play(t *testing.T, base string, session []exchange) {
	t.Helper()
	for _, x := range session {
		header := []string{}
		if strings.HasPrefix(x.path, "/plugin/") {
			header = []string{"Content-Type", "application/json"}
		}
		status, body := send(t, x.method, base+x.path, x.body, header...)
		if status != x.status {
			t.Errorf("%s %s %s: status %d %s, want %d", x.method, x.path, x.body, status, body, x.status)
		}
		if part, ok := strings.CutPrefix(x.want, "~"); ok {
			if !strings.Contains(body, part) {
				t.Errorf("%s %s %s:\n got %s\nwant %s in it", x.method, x.path, x.body, body, part)
			}
		} else if diff := cmp.Diff(x.want, body); diff != "" {
			t.Errorf("%s %s %s (-want +got):\n%s", x.method, x.path, x.body, diff)
		}
	}
}

const (
	tenantPath  = "/api/v1/tenants/"
	networkPath = "/api/v1/networks/"
	groupPath   = "/api/v1/endpointGroups/"
	globalPath  = "/api/v1/globals/"
	inspect     = "/api/v1/inspect/"
)

func TestObjects(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	net := `{"tenantName":"default","networkName":"net1","encap":"vxlan","subnet":"10.1.1.1/24","gateway":"10.1.1.254"}`
	play(t, base, []exchange{
		{"GET", tenantPath, "", 200, `[{"key":"default","tenantName":"default","link-sets":{}}]`},
		{"GET", networkPath, "", 200, `[]`},
		{"GET", globalPath + "global/", "", 200, `{"key":"global","arpMode":"proxy","fwdMode":"routing","name":"global",` +
			`"networkInfraType":"default","pvtSubnet":"172.19.0.0/16","vlans":"1-4094","vxlans":"1-10000"}`},
		{"POST", networkPath + "default:net1/", net, 200, `{"key":"default:net1","encap":"vxlan","gateway":"10.1.1.254","networkName":"net1",` +
			`"nwType":"data","subnet":"10.1.1.1/24","tenantName":"default","link-sets":{},"links":{"Tenant":{"type":"tenant","key":"default"}}}`},
		{"POST", networkPath + "default:net1/", net, 500, `~cannot change network parameters after creation`},
		{"GET", inspect + "networks/default:net1/", "", 200, `~"Oper":{"allocatedIPAddresses":"10.1.1.254","availableIPAddresses":"10.1.1.1-10.1.1.253",` +
			`"externalPktTag":1,"networkTag":"net1.default","pktTag":1}}`},
		{
			"POST", groupPath + "default:web/", `{"groupName":"web","networkName":"net1","tenantName":"default",` +
				`"link-sets":{"Policies":{"x":{"type":"policy","key":"x"}}},"links":{"AppProfile":{"type":"appProfile","key":"y"}}}`, 200,
			`{"key":"default:web","groupName":"web","networkName":"net1","tenantName":"default","link-sets":{},` +
				`"links":{"AppProfile":{},"NetProfile":{},"Network":{"type":"network","key":"default:net1"},"Tenant":{"type":"tenant","key":"default"}}}`,
		},
		{"GET", tenantPath + "default/", "", 200, `{"key":"default","tenantName":"default","link-sets":{` +
			`"EndpointGroups":{"default:web":{"type":"endpointGroup","key":"default:web"}},"Networks":{"default:net1":{"type":"network","key":"default:net1"}}}}`},
		{"DELETE", networkPath + "default:net1/", "", 500, `cannot delete network default:net1: it has endpoint groups: web`},
		{"DELETE", tenantPath + "default/", "", 500, `cannot delete tenant default: it has 1 endpoint groups`},
		{
			"POST", networkPath + "default:web/", `{"tenantName":"default","networkName":"web","encap":"vlan","subnet":"10.2.1.0/24"}`, 500,
			`EndpointGroup web conflicts with the network name`,
		},
		{
			"POST", groupPath + "default:net1/", `{"groupName":"net1","networkName":"net1","tenantName":"default"}`, 500,
			`Network net1 conflicts with the endpoint group name`,
		},
		{
			"POST", groupPath + "default:web/", `{"groupName":"web","networkName":"net1","tenantName":"default","policies":["p1"]}`, 500,
			`Policy not found: default:p1`,
		},
		{
			"POST", groupPath + "default:web/", `{"groupName":"web","networkName":"net2","tenantName":"default"}`, 500,
			`~cannot change network association`,
		},
		{
			"PUT", groupPath + "default:web/", `{"groupName":"web","networkName":"net1","tenantName":"default","cfgdTag":"ignored"}`, 200,
			`~{"key":"default:web","groupName":"web"`,
		},
		{"POST", tenantPath + "default/", `{"tenantName":"default"}`, 500, `~cannot change tenant parameters after creation`},
		{"DELETE", groupPath + "default:web/", "", 200, `"default:web"`},
		{"DELETE", networkPath + "default:net1/", "", 200, `"default:net1"`},
		{"DELETE", tenantPath + "default/", "", 200, `"default"`},
		{"GET", tenantPath, "", 200, `[]`},
		{"GET", tenantPath + "default/", "", 500, `tenant not found`},
		{"DELETE", networkPath + "default:net1/", "", 500, `network not found`},
		{"GET", inspect + "endpointGroups/default:web/", "", 500, `endpointGroup not found`},
		{"GET", inspect + "endpoints/nobody/", "", 500, `endpoint not found`},
		{"POST", networkPath + "default:net1/", net, 500, `Tenant not found: default`},
	})
}

func TestTransport(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	deep := strings.Repeat(`[`, 20000)
	play(t, base, []exchange{
		{"GET", "/api/v1/tenants", "", 200, `[{"key":"default","tenantName":"default","link-sets":{}}]`},
		{"GET", "/api/v1//tenants/", "", 301, `~`},
		{"GET", "/api/v1/nothing/", "", 404, `404 page not found`},
		{"PATCH", tenantPath + "default/", "", 404, `404 page not found`},
		{"POST", tenantPath, "", 404, `404 page not found`},
		{"GET", "/api/v1/endpoints/", "", 404, `404 page not found`},
		{"POST", tenantPath + "blue/", ``, 500, `request body is empty, expected a JSON object`},
		{"POST", tenantPath + "blue/", `{"tenantName":`, 500, `request body ends in the middle of a JSON value`},
		{"POST", tenantPath + "blue/", `{"tenantName";}`, 500, `~request body is not JSON: `},
		{"POST", tenantPath + "blue/", `{"tenantName":7}`, 500, `tenantName: expected a string, got number`},
		{"POST", tenantPath + "blue/", `[]`, 500, `request body is a JSON array, expected an object`},
		{"POST", tenantPath + "blue/", `null`, 500, `Invalid Key`},
		{"POST", tenantPath + "blue/", `{"tenantName":"red"}`, 500, `Invalid Key`},
		{"POST", tenantPath + "blue/", "{\"tenantName\":\"blue\",\"defaultNetwork\":\"\xff\"}", 500, `request body is not valid UTF-8`},
		{"POST", tenantPath + "blue/", `{"x":` + deep, 500, `~request body is not JSON: `},
		{"POST", tenantPath + "blue/", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, 500, `request body is larger than 1048576 bytes`},
		{"POST", tenantPath + "a%2Fb/", `{"tenantName":"a/b"}`, 500, `tenantName string invalid format`},
		{"GET", tenantPath + "a%2Fb/", "", 500, `tenant not found`},
		{"POST", tenantPath + "blue/", `{"TENANTNAME":"blue","other":1} trailing`, 200, `{"key":"blue","tenantName":"blue","link-sets":{}}`},
		{"DELETE", tenantPath + "blue", "", 200, `"blue"`},
	})
	if status, _ := send(t, "POST", base+"/plugin/createEndpoint", `{}`, "Content-Type", "application/json; charset=utf-8"); status != 404 {
		t.Errorf("plugin call with another content type: status %d", status)
	}
}

// TestTags is about VLANs, VNIs and their ranges.
func TestTags(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	create := func(name, encap, subnet, tag string) exchange {
		return exchange{"POST", networkPath + "default:" + name + "/", `{"tenantName":"default","networkName":"` + name + `","encap":"` + encap +
			`","subnet":"` + subnet + `","pktTag":` + tag + `}`, 200, `~"networkName":"` + name + `"`}
	}
	refused := func(x exchange, want string) exchange {
		x.status, x.want = 500, want
		return x
	}
	oper := func(name, want string) exchange {
		return exchange{"GET", inspect + "networks/default:" + name + "/", "", 200, "~" + want}
	}
	global := func(vlans, vxlans string) exchange {
		return exchange{
			"POST", globalPath + "global/", `{"name":"global","pvtSubnet":"172.19.0.0/16","vlans":"` + vlans + `","vxlans":"` + vxlans + `"}`,
			200, `~"arpMode":"proxy","fwdMode":"routing"`,
		}
	}
	play(t, base, []exchange{
		create("n1", "vxlan", "10.1.1.0/24", "0"),
		create("n2", "vxlan", "10.1.2.0/24", "0"),
		create("n3", "vxlan", "10.1.3.0/24", "1000"),
		oper("n1", `"externalPktTag":1,"networkTag":"n1.default","pktTag":1`),
		oper("n2", `"externalPktTag":2,"networkTag":"n2.default","pktTag":2`),
		oper("n3", `"externalPktTag":1000,"networkTag":"n3.default","pktTag":3`),
		create("v10", "vlan", "10.2.1.0/24", "10"),
		create("v11", "vlan", "10.2.2.0/24", "11"),
		create("v300", "vlan", "10.2.3.0/24", "300"),
		refused(create("v", "vlan", "10.2.4.0/24", "10"), `requested vlan not available - vlan:10, range 1-4094`),
		refused(create("v", "vlan", "10.2.4.0/24", "5000"), `requested vlan not available - vlan:5000, range 1-4094`),
		refused(create("v", "vxlan", "10.2.4.0/24", "20000"), `requested vxlan is out of range - vxlan:20000, range 1-10000`),
		refused(create("v", "vxlan", "10.2.4.0/24", "1000"), `requested vxlan not available - vxlan:1000`),
		refused(create("v", "vxlan", "10.2.4.0/24", "16777217"), `pktTag Value Out of bound`),
		refused(create("v", "vxlan", "10.2.4.0/24", "-1"), `pktTag Value Out of bound`),
		refused(create("v", "vxlan", "10.2.4.0/24", `"x"`), `pktTag: expected an integer, got string`),
		{"GET", inspect + "globals/global/", "", 200, `~"Oper":{"clusterMode":"test","numNetworks":6,"vlansInUse":"10-11, 300","vxlansInUse":"1-2, 1000"}}`},
		global("9-301", "1-10000"),
		refused(create("v", "vlan", "10.2.4.0/24", "302"), `requested vlan not available - vlan:302, range 9-301`),
		create("v299", "vlan", "10.2.4.0/24", "299"),
		refused(global("50-301", "1-10000"), `~cannot update the vlan range due to existing vlans 10-11, 299-300`),
		refused(global("1-200", "1-10000"), `~cannot update the vlan range due to existing vlans`),
		global("1-800", "1-10000"),
		refused(global("1-800", "2-10000"), `~cannot update the vxlan range due to existing vxlans 1-2, 1000`),
		global("1-800", "1-1000"),
		refused(create("v", "vxlan", "10.2.5.0/24", "1001"), `requested vxlan is out of range - vxlan:1001, range 1-1000`),
		refused(global("1-5000", "1-1000"), `vlans "1-5000" is not a range within 1-4095`),
		refused(global("0-4094", "1-1000"), `vlans "0-4094" is not a range within 1-4095`),
		refused(global("1", "1-1000"), `vlans string invalid format`),
		refused(global("1?2", "1-1000"), `vlans string invalid format`),
		refused(global("abcd", "1-1000"), `vlans string invalid format`),
		refused(global("1-800", "1-100000"), `vxlans "1-100000" is not a range within 1-65535`),
		refused(global("1-800", "1-20000"), `vxlans "1-20000" spans more than 16001`),
		{"POST", globalPath + "global/", `{"name":"global","pvtSubnet":"172.19.0.0/24","vlans":"1-800","vxlans":"1-1000"}`, 500, `pvtSubnet string invalid format`},
		{
			"POST", globalPath + "global/", `{"name":"global","networkInfraType":"xyz","pvtSubnet":"172.19.0.0/16","vlans":"1-800","vxlans":"1-1000"}`, 500,
			`networkInfraType string invalid format`,
		},
		{
			"POST", globalPath + "global/", `{"name":"global","fwdMode":"bridge","pvtSubnet":"172.19.0.0/16","vlans":"1-800","vxlans":"1-1000"}`, 500,
			`Unable to update forwarding mode due to existing 4 vlans and 3 vxlans`,
		},
		{"DELETE", networkPath + "default:v10/", "", 200, `"default:v10"`},
		{"DELETE", networkPath + "default:v11/", "", 200, `"default:v11"`},
		{"DELETE", networkPath + "default:v299/", "", 200, `"default:v299"`},
		{"DELETE", networkPath + "default:v300/", "", 200, `"default:v300"`},
		{
			"POST", globalPath + "global/", `{"name":"global","pvtSubnet":"172.20.0.0/16","vlans":"1-800","vxlans":"1-1000"}`, 500,
			`Unable to update private subnet due to existing 3 vxlans`,
		},
		{"DELETE", globalPath + "global/", "", 500, `cannot delete the global settings due to existing 3 vxlans`},
		{"DELETE", networkPath + "default:n1/", "", 200, `"default:n1"`},
		{"DELETE", networkPath + "default:n2/", "", 200, `"default:n2"`},
		{"DELETE", networkPath + "default:n3/", "", 200, `"default:n3"`},
		{"DELETE", globalPath + "global/", "", 200, `"global"`},
		refused(create("v", "vxlan", "10.2.4.0/24", "0"), `Global configuration is not ready: object global does not exist`),
		{"POST", globalPath + "global/", `{"name":"global","pvtSubnet":"172.20.0.0/16","vlans":"1-800","vxlans":"1001-1500"}`, 200, `~"key":"global"`},
		refused(create("v", "vxlan", "10.2.4.0/24", "0"), `Global configuration is not ready: fwdMode is not set`),
		{"POST", globalPath + "global/", `{"name":"global","fwdMode":"bridge","pvtSubnet":"172.20.0.0/16","vlans":"1-800","vxlans":"1001-1500"}`, 200, `~"key":"global"`},
		create("v", "vxlan", "10.2.4.0/24", "0"),
		oper("v", `"externalPktTag":1001,"networkTag":"v.default","pktTag":1`),
		{"GET", inspect + "globals/global/", "", 200, `~"Oper":{"clusterMode":"test","freeVXLANsStart":1000,"numNetworks":1,"vxlansInUse":"1001"}}`},
	})
}

// TestSubnets is about what subnets a network may have.
func TestSubnets(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	create := func(name, subnet, more string, status int, want string) exchange {
		return exchange{
			"POST", networkPath + "default:" + name + "/",
			`{"tenantName":"default","networkName":"` + name + `","encap":"vxlan","subnet":"` + subnet + `"` + more + `}`, status, want,
		}
	}
	play(t, base, []exchange{
		create("r1", "20.1.1.10-20.1.1.45/24", "", 200, `~r1`),
		create("r2", "20.1.1.46-20.1.1.100/24", "", 200, `~r2`),
		create("r3", "20.1.1.0-20.1.1.9/24", "", 200, `~r3`),
		create("r4", "20.1.1.45-20.1.1.100/24", "", 500, `~conflicts with subnet 20.1.1.45-20.1.1.100/24`),
		create("a1", "10.1.1.200/24", "", 200, `~a1`),
		create("a2", "10.1.1.10-10.1.1.50/24", "", 500, `network a1 conflicts with subnet 10.1.1.10-10.1.1.50/24`),
		create("a3", "10.1.1.10-20/24", "", 500, `subnet string invalid format`),
		create("a3", "10.1.2.10-10.1.2.1/24", "", 500, `~Network subnet format not valid`),
		create("a3", "10.1.2.10-10.1.3.30/24", "", 500, `~Network subnet format not valid`),
		create("a3", "10.1.2/24", "", 500, `subnet string invalid format`),
		create("a3", "10.1.2.256/24", "", 500, `subnet string invalid format`),
		create("a3", "10.1.2.0/32", "", 500, `subnet string invalid format`),
		create("a3", "10.0.0.0/7", "", 500, `~subnet length 7 not supported`),
		create("a3", "", "", 500, `subnet string invalid format`),
		create("a3", "10.3.1.0/24", `,"gateway":"10.4.1.1"`, 500, `gateway 10.4.1.1 is exceeding beyond subnet 10.3.1.0/24`),
		create("a3", "10.3.1.0/24", `,"gateway":"x"`, 500, `gateway string invalid format`),
		create("a3", "10.3.1.0/24", `,"ipv6Subnet":"2001:db8::/128"`, 500, `ipv6Subnet string invalid format`),
		create("a3", "10.3.1.0/24", `,"ipv6Subnet":"::ffff:1.2.3.4/100"`, 500, `ipv6Subnet string invalid format`),
		create("a3", "10.3.1.0/24", `,"ipv6Subnet":"2001:db8::/64","ipv6Gateway":"2001:db9::1"`, 500, `ipv6Gateway 2001:db9::1 is exceeding beyond subnet 2001:db8::/64`),
		create("a3", "10.3.1.0/24", `,"ipv6Gateway":"2001:db8::1"`, 500, `ipv6Gateway 2001:db8::1: the network has no such subnet`),
		create("a3", "10.3.1.0/24", `,"ipv6Subnet":"2001:db8::/100","ipv6Gateway":"2001:db8::fe"`, 200, `~a3`),
		create("a4", "10.4.1.0/24", `,"ipv6Subnet":"2001:db8::/64"`, 500, `network a3 conflicts with subnet 2001:db8::/64`),
		create("a4", "10.4.1.0/24", `,"tenantname":"blue"`, 500, `Invalid Key`),
		{"POST", tenantPath + "blue/", `{"tenantName":"blue"}`, 200, `~blue`},
		{"POST", networkPath + "blue:a1/", `{"tenantName":"blue","networkName":"a1","encap":"vlan","subnet":"10.1.1.0/24"}`, 200, `~blue:a1`},
		{"POST", tenantPath + "c.blue/", `{"tenantName":"c.blue"}`, 200, `~c.blue`},
		{"POST", networkPath + "c.blue:n/", `{"tenantName":"c.blue","networkName":"n","encap":"vlan","subnet":"10.1.1.0/24"}`, 200, `~c.blue:n`},
		{
			"POST", networkPath + "blue:n.c/", `{"tenantName":"blue","networkName":"n.c","encap":"vlan","subnet":"10.9.1.0/24"}`, 500,
			`network id n.c.blue is taken by network n of tenant c.blue`,
		},
		{"GET", inspect + "tenants/blue/", "", 200, `~"Oper":{"networks":[{"availableIPAddresses":"10.1.1.1-10.1.1.254","networkTag":"a1.blue","pktTag":1}],"totalNetworks":1}}`},
	})
}
