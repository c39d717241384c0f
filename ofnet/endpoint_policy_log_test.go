package ofnet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// TestLoggedBesidePolicies: in a VRF in which only policies of endpoints decide, a log has the
// connections of others tracked, but drops none of them: neither for their state nor beyond
// the rate. Those of the endpoints with policies are what they are without the log.
func TestLoggedBesidePolicies(t *testing.T) {
	sw := ovstest.Start(t)
	b := endpointPolicyBridges(t)["vrouter"]
	b.p = newPipeline(t, Settings{
		Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, EndpointPolicies: true, ConnectionRate: 5000, FlowLog: LogAll,
	})
	s := b.start(t, sw, "br")
	guarded, one, two := b.endpoints[0], b.endpoints[1], b.endpoints[2]
	s.Set("in", b.p.Program(PolicyRuleSet{ID: "in", Number: 20}))
	s.Set("guard", b.p.Program(EndpointPolicy{Endpoint: guarded, In: 20}))
	s.Set("vrf", b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: 1, EndpointPoliciesOnly: true, LogOnly: true}))
	settle(t, s)
	meter := fmt.Sprintf("meter:%d", connectionMeter(one.Port))
	for name, c := range map[string]struct {
		to            Endpoint
		state         string
		passes, rated bool
	}{
		"a new connection":                  {two, "trk,new", true, false},
		"an established one":                {two, "trk,est", true, false},
		"what belongs to none":              {two, "trk,inv", true, false},
		"a new one to who has a policy":     {guarded, "trk,new", false, true},
		"what belongs to none, to the same": {guarded, "trk,inv", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			trace := sw.Trace("br", fmt.Sprintf("udp,in_port=%d,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=64,udp_dst=80", one.Port, one.MAC, RouterMAC, one.IPv4, c.to.IPv4), "--ct-next", c.state)
			if got := strings.Contains(trace, tableGoto(b.p, b.p.first(stageReply))); got != c.passes {
				t.Errorf("passes %t:\n%s", got, trace)
			}
			if got := strings.Contains(trace, meter+"\n"); got != c.rated {
				t.Errorf("rated %t:\n%s", got, trace)
			}
			if !strings.Contains(trace, "ct(") {
				t.Errorf("not tracked:\n%s", trace)
			}
		})
	}
}
