package ofnet

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	of "github.com/contiv/netplugin/libopenflow"
)

var update = flag.Bool("update", false, "write the golden files")

const testTunnelPort, testDNSPort = 65000, 65001

// The objects of the golden files and of the traces: two networks of one tenant, one of
// another tenant with the same subnet; endpoints here and on another host.
var (
	vxNet1  = Network{ID: "net1.blue", Encap: VXLAN, VRF: 1, Tag: 1, VNI: 10001, Gateway4: addr("10.1.1.254"), Gateway6: addr("2001:db8:1::fe")}
	vxNet2  = Network{ID: "net2.blue", Encap: VXLAN, VRF: 1, Tag: 2, VNI: 10002, Gateway4: addr("10.1.2.254")}
	vxOther = Network{ID: "net1.red", Encap: VXLAN, VRF: 2, Tag: 3, VNI: 10003, Gateway4: addr("10.1.1.254")}

	local1  = endpointOf(vxNet1, "net1.blue-a", "10.1.1.1", "2001:db8:1::1", 1, "")
	local1b = endpointOf(vxNet1, "net1.blue-b", "10.1.1.2", "2001:db8:1::2", 2, "")
	local2  = endpointOf(vxNet2, "net2.blue-c", "10.1.2.1", "", 3, "")
	remote1 = endpointOf(vxNet1, "net1.blue-d", "10.1.1.3", "2001:db8:1::3", 0, "192.168.60.11")
	remote2 = endpointOf(vxNet2, "net2.blue-e", "10.1.2.2", "", 0, "192.168.60.12")
	red     = endpointOf(vxOther, "net1.red-f", "10.1.1.2", "", 4, "")
	redFar  = endpointOf(vxOther, "net1.red-g", "10.1.1.3", "", 0, "192.168.60.11")

	remote6 = endpointOf(vxNet1, "net1.blue-h", "10.1.1.4", "2001:db8:1::4", 0, "2001:db8:60::13")

	vxFlood1 = Flood{Network: vxNet1, Ports: []uint32{1, 2}, VTEPs: []netip.Addr{addr("192.168.60.11"), addr("2001:db8:60::13")}}
	vxFlood2 = Flood{Network: vxNet2, Ports: []uint32{3}, VTEPs: []netip.Addr{addr("192.168.60.12")}}
	vxFlood3 = Flood{Network: vxOther, Ports: []uint32{4}, VTEPs: []netip.Addr{addr("192.168.60.11")}}

	webRule  = Rule{ID: "blue:web:blue:p:blue:p:1:inRx", Priority: 10, DstGroup: 7, Proto: 6, DstPort: 80}
	denyRule = Rule{ID: "blue:web:blue:p:blue:p:2:inRx", Priority: 1, DstGroup: 7, Src: netip.MustParsePrefix("10.9.0.0/16"), Proto: 6, Flags: "syn,!ack", Deny: true}

	vlNet1 = Network{ID: "v1.default", Encap: VLAN, VRF: 3, Tag: 101, Gateway4: addr("10.2.1.254")}
	vlNet2 = Network{ID: "v2.default", Encap: VLAN, VRF: 3, Tag: 102}
	vl1    = endpointOf(vlNet1, "v1.default-a", "10.2.1.1", "", 1, "")
	vl2    = endpointOf(vlNet1, "v1.default-b", "10.2.1.2", "", 2, "")
	vl3    = endpointOf(vlNet2, "v2.default-c", "10.2.1.2", "", 3, "")
	vlFar  = endpointOf(vlNet1, "v1.default-d", "10.2.1.3", "", 0, "")
	uplink = Uplink{Name: "eth2", Port: 65010}
)

func policed(e Endpoint) Endpoint {
	e.Policed = true
	return e
}

func limited(e Endpoint, q QoS) Endpoint {
	e.QoS = q
	return e
}

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func endpointOf(n Network, id, ip4, ip6 string, port uint32, vtep string) Endpoint {
	a := addr(ip4)
	b := a.As4()
	return Endpoint{
		ID: id, Encap: n.Encap, VRF: n.VRF, Tag: n.Tag, VNI: n.VNI, Group: 7,
		MAC: MAC{2, 2, b[0], b[1], b[2], b[3]}, IPv4: a, IPv6: addr(ip6), Port: port, VTEP: addr(vtep),
	}
}

func vrouter(t testing.TB) *Pipeline {
	return newPipeline(t, Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1})
}

func vxbridge(t testing.TB) *Pipeline {
	return newPipeline(t, Settings{Encap: VXLAN, TunnelPort: testTunnelPort, Round: 1})
}

func newPipeline(t testing.TB, set Settings) *Pipeline {
	t.Helper()
	p, err := NewPipeline(set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGoldenFlows(t *testing.T) {
	r := vrouter(t)
	v := newPipeline(t, Settings{Encap: VLAN, Round: 1})
	flood := newPipeline(t, Settings{Encap: VLAN, ARPFlood: true, Round: 1})
	x := vxbridge(t)
	names := DNSSettings{Rate: 1000, Port: testDNSPort}
	rd := newPipeline(t, Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, DNS: names})
	vd := newPipeline(t, Settings{Encap: VLAN, Round: 1, DNS: names})
	g := endpointPolicyBridges(t)["vrouter"].p
	rh := newPipeline(t, Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, Host: testAccess})
	rated := newPipeline(t, Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, ConnectionRate: 5000, Kernel: true})
	open := newPipeline(t, Settings{Encap: VXLAN, TunnelPort: testTunnelPort, Round: 1, AllowSpoofing: true})
	for _, c := range []struct {
		name  string
		p     *Pipeline
		flows Program
	}{
		{"vrouter_fixed", r, r.Program(Base{})},
		{"vrouter_rated_fixed", rated, rated.Program(Base{})},
		{"vrouter_rated_endpoint", rated, rated.Program(local1)},
		{"vrouter_network", r, r.Program(vxNet1)},
		{"vrouter_network_without_ipv6", r, r.Program(vxNet2)},
		{"vrouter_peer", r, r.Program(Peer{VTEP: addr("192.168.60.11")})},
		{"vlan_reach", v, v.Program(testControl)},
		{"vrouter_reach", rh, rh.Program(testControl)},
		{"vrouter_endpoint_local", r, r.Program(local1)},
		{"vrouter_endpoint_remote", r, r.Program(remote1)},
		{"vrouter_endpoint_qos", r, r.Program(limited(local1, QoS{Rate: 10485, Burst: 100, DSCP: 46}))},
		{"vlan_endpoint_rate_only", v, v.Program(limited(vl1, QoS{Rate: 1000}))},
		{"endpoint_policy_vrf", g, g.Program(VRFPolicy{VRF: 1, Generation: 0x1234567, EndpointPoliciesOnly: true})},
		{"endpoint_policy_endpoint", g, g.Program(EndpointPolicy{Endpoint: local1, In: 16, Out: 17})},
		{"endpoint_policy_rule_set", g, g.Program(PolicyRuleSet{ID: "web", Number: 16, Allows: []Allow{
			{},
			{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}},
			{Ports: []PortRange{{Proto: 6, Low: 80, High: 95}, {Proto: 132, High: 65535}}},
			{
				Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.1/32"), netip.MustParsePrefix("10.1.1.2/32"), netip.MustParsePrefix("10.1.1.3/32"), netip.MustParsePrefix("::/0")},
				Ports: []PortRange{{Proto: 6, Low: 80, High: 82}, {Proto: 17, Low: 53, High: 53}},
			},
		}})},
		{"endpoint_policy_rule_set_of_classes", g, g.Program(PolicyRuleSet{ID: "db", Number: 17, Out: true, Allows: []Allow{
			{Classes: []uint32{7}},
			{Classes: []uint32{7}, Ports: []PortRange{{Proto: 6, Low: 80, High: 80}}},
			{
				Classes: []uint32{7, 8, 9}, Peers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
				Ports: []PortRange{{Proto: 6, Low: 80, High: 82}, {Proto: 17, Low: 53, High: 53}},
			},
		}})},
		{"endpoint_policy_peer", g, g.Program(PolicyPeer{ID: "default 10.1.1.2", VRF: 1, Addr: addr("10.1.1.2"), Class: 7})},
		{"endpoint_policy_own_node", g, g.Program(OwnNode{Endpoints: []Endpoint{local2}, Addrs: []netip.Addr{addr("192.168.60.10"), addr("2001:db8:60::10")}})},
		{"vlan_fixed", v, v.Program(Base{})},
		{"vlan_network", v, v.Program(vlNet1)},
		{"vlan_endpoint_local", v, v.Program(vl1)},
		{"vlan_endpoint_remote", v, v.Program(vlFar)},
		{"vlan_uplink", v, v.Program(uplink)},
		{"vrouter_vrf", r, r.Program(VRFPolicy{VRF: 1, Generation: 0x1234567})},
		{"vrouter_rule", r, r.Program(webRule)},
		{"vrouter_endpoint_policed", r, r.Program(policed(remote1))},
		{"vlan_endpoint_policed", v, v.Program(policed(vlFar))},
		{"vlan_rule_of_one_family", v, v.Program(denyRule)},
		{"vxlan_fixed", x, x.Program(Base{})},
		{"vxlan_network", x, x.Program(vxNet1)},
		{"vxlan_endpoint_local", x, x.Program(local1)},
		{"vxlan_endpoint_remote", x, x.Program(remote1)},
		{"vxlan_spoofing_fixed", open, open.Program(Base{})},
		{"vxlan_spoofing_endpoint_local", open, open.Program(local1)},
		{"vxlan_flood", x, x.Program(vxFlood1)},
		{"vlan_flood_fixed", flood, flood.Program(Base{})},
		{"vlan_flood_endpoint_local", flood, flood.Program(vl1)},
		{"vrouter_dns_fixed", rd, rd.Program(Base{})},
		{"vrouter_dns_network", rd, rd.Program(vxNet1)},
		{"vrouter_dns_endpoint", rd, rd.Program(local1)},
		{"vlan_dns_fixed", vd, vd.Program(Base{})},
		{"vlan_dns_endpoint", vd, vd.Program(vl1)},
		{"vrouter_service", r, r.Program(webService(vxNet1, 0))},
		{"vrouter_service_affinity", r, r.Program(webService(vxNet1, time.Hour))},
		{"vlan_service", v, v.Program(webService(vxNet1, 0))},
	} {
		t.Run(c.name, func(t *testing.T) { golden(t, c.name, render(c.p, c.flows)) })
	}
}

// render prints flows with the names of their tables.
func render(p *Pipeline, program Program) string {
	var b strings.Builder
	for _, m := range program.Meters {
		b.WriteString(m.String() + "\n")
	}
	for _, g := range program.Groups {
		b.WriteString(g.String() + "\n")
	}
	flows := slices.Clone(program.Flows)
	slices.SortStableFunc(flows, func(a, b of.Flow) int { return int(a.Table) - int(b.Table) })
	last := -1
	for _, f := range flows {
		if int(f.Table) != last {
			last = int(f.Table)
			fmt.Fprintf(&b, "# %d %s\n", last, p.Tables()[last])
		}
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".flows")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./ofnet -update and look at the result", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("flows differ from %s (-want +got):\n%s", path, diff)
	}
}

func TestModesThatDoNotExist(t *testing.T) {
	for _, set := range []Settings{{Routing: true}, {}} {
		if p, err := NewPipeline(set); err == nil {
			t.Errorf("%+v gives pipeline %s, expected an error", set, p.Mode())
		}
	}
}

// No two objects want the same flow, in any mode, with and without host access.
func TestFlowsAreUnique(t *testing.T) {
	modes := map[string]map[string]Program{
		"vrouter": routedFlows(vrouter(t)), "vxlan": tunnelledFlows(vxbridge(t)),
		"vlan": bridgedFlows(newPipeline(t, Settings{Encap: VLAN, Round: 1})), "vlrouter": uplinkFlows(vlrouter(t)),
	}
	for name, set := range hostModes {
		_, modes[name+" with host access"] = hostFlows(t, set)
	}
	for mode, programs := range modes {
		seen := map[of.FlowKey]string{}
		for owner, p := range programs {
			for _, f := range p.Flows {
				if other, dup := seen[f.Key()]; dup {
					t.Errorf("%s: %s and %s both want %s", mode, owner, other, f)
				}
				seen[f.Key()] = owner
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s: no flows", mode)
		}
	}
}

// A network on more hosts than fit into one message is flooded in parts.
func TestFloodToManyHosts(t *testing.T) {
	f := Flood{Network: vxNet1, Ports: []uint32{1}}
	for i := range 2500 {
		f.VTEPs = append(f.VTEPs, netip.AddrFrom4([4]byte{192, 168, byte(i >> 8), byte(i)}))
	}
	p := vxbridge(t).Program(f)
	ids, buckets := map[uint32]bool{}, 0
	for _, g := range p.Groups {
		ids[g.ID] = true
		if len(g.Buckets) > 60<<10 {
			t.Errorf("group %d has buckets of %d bytes, expected less than a message", g.ID, len(g.Buckets))
		}
		for range g.Buckets.All() {
			buckets++
		}
	}
	if len(ids) != 4 || buckets != 2502 {
		t.Errorf("%d groups with %d buckets, expected 3 for all, 1 for the local port, and one bucket each", len(ids), buckets)
	}
}
