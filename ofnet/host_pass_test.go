package ofnet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// TestTraceForwardedByTheHost: packets that the host only forwards to a container are
// subject to the container's policy and to rules; packets from the host itself are not.
func TestTraceForwardedByTheHost(t *testing.T) {
	sw := ovstest.Start(t)
	for name, set := range hostModes {
		t.Run(name, func(t *testing.T) {
			set.Round, set.Host, set.TunnelPort, set.EndpointPolicies = 1, testAccess, testTunnelPort, true
			p := newPipeline(t, set)
			guarded, ruled, network := known(policed(local1), true), known(policed(local1b), true), vxNet1
			if set.Encap == VLAN {
				guarded, ruled, network = known(policed(vl1), true), known(policed(vl2), true), vlNet1
			}
			bridge := "p-" + name // short: Open vSwitch 4.0 refuses ports whose names are longer than those of links
			realBridge(t, sw, bridge, map[string]Program{
				"fixed": p.Program(Base{}), "host": p.Program(HostPort{Port: testHostPort, Infra: []netip.Addr{addr("132.1.1.2")}}), "net": p.Program(within(network)),
				"guarded": p.Program(guarded), "ruled": p.Program(ruled),
				"set":   p.Program(PolicyRuleSet{ID: "in", Number: 20, Allows: []Allow{{Peers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}}),
				"guard": p.Program(EndpointPolicy{Endpoint: guarded, In: 20}),
				"rule":  p.Program(Rule{ID: "r", Priority: 10, Dst: host(ruled.IPv4), Proto: 6, DstPort: 22, Deny: true}),
				"vrf":   p.Program(VRFPolicy{VRF: network.VRF, Generation: 3}),
				"node":  p.Program(OwnNode{Endpoints: nil, Addrs: []netip.Addr{addr("172.19.255.254")}}),
			})
			for i := range 4 {
				sw.AddDummyPort(bridge, fmt.Sprintf("%s-p%d", bridge, i+1), fmt.Sprint(i+1))
			}
			sw.AddDummyPort(bridge, bridge+"-host", fmt.Sprint(testHostPort))
			inside := guarded.IPv4.Next().Next().Next()
			for _, c := range []struct {
				name, src string
				to        Endpoint
				port      int
				passes    bool
			}{
				{"the host to a guarded container", "172.19.255.254", guarded, 80, true},
				{"the host under its address in an infra network", "132.1.1.2", guarded, 80, true},
				{"somebody else of that network", "132.1.1.3", guarded, 80, false},
				{"somebody whom the guard allows", "192.0.2.9", guarded, 80, true},
				{"somebody whom it does not", "203.0.113.9", guarded, 80, false},
				{"somebody who is not seen as who he is", "172.19.255.253", guarded, 80, false},
				{"a container by its private address", "172.19.0.7", guarded, 80, false},
				{"somebody who passes for a container", inside.String(), guarded, 80, false},
				{"the host past a rule", "172.19.255.254", ruled, 22, true},
				{"somebody whom a rule denies", "192.0.2.9", ruled, 22, false},
				{"somebody whom no rule denies", "192.0.2.9", ruled, 80, true},
				{"somebody who passes for a container where no rule denies", inside.String(), ruled, 80, false},
			} {
				packet := fmt.Sprintf("in_port=%d,dl_src=02:02:ac:13:ff:fe,dl_dst=02:02:ac:13:ff:fe,tcp,nw_ttl=63,nw_src=%s,nw_dst=%s,tp_dst=%d", testHostPort, c.src, c.to.IPv4, c.port)
				trace := sw.Trace(bridge, packet, "--ct-next", "trk,new", "--ct-next", "trk,new")
				if got := strings.Contains(trace, fmt.Sprintf("output port is %d", c.to.Port)); got != c.passes {
					t.Errorf("%s: passes %t\n%s", c.name, got, trace)
				}
			}
		})
	}
}
