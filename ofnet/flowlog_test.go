package ofnet

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// logModes are all modes with everything that may be in them.
func logModes() map[string]Settings {
	all := Settings{Round: 1, EndpointPolicies: true, ConnectionRate: 5000, Host: testAccess, DNS: DNSSettings{Rate: 1000, Port: testDNSPort}}
	out := map[string]Settings{}
	for _, m := range Modes() {
		set := all
		set.Encap, set.Routing = VLAN, m == VXLANRouting || m == VLANRouting
		if m == VXLANRouting || m == VXLANBridge {
			set.Encap, set.TunnelPort = VXLAN, testTunnelPort
		} else if set.Routing {
			set.HostMAC = HostMAC(addr("192.168.60.10"))
		}
		out[m.String()] = set
	}
	return out
}

// logObjects are objects of every kind that has to do with denials.
func logObjects(mode string) map[string]Object {
	network, here, far := vxNet1, local1, remote1
	if strings.HasPrefix(mode, "vl") {
		network, here, far = vlNet1, vl1, vlFar
	}
	reject := denyRule
	reject.ID, reject.Reject = "no", true
	sets := PolicyRuleSet{ID: "set", Number: 20, Allows: []Allow{
		{Peers: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}, Name: "ns/np ingress[0]"},
		{Ports: []PortRange{{Proto: 6, Low: 80, High: 80}}, Name: "ns/np ingress[1]"},
	}}
	out := sets
	out.ID, out.Number, out.Out = "out", 21, true
	return map[string]Object{
		"fixed": Base{}, "network": network, "endpoint": policed(here), "far": policed(far), "rule": webRule, "deny": denyRule, "reject": reject, "in": sets, "out": out,
		"policy": EndpointPolicy{Endpoint: here, In: 20, Out: 21}, "vrf": VRFPolicy{VRF: here.VRF, Generation: 7}, "peer": Peer{VTEP: addr("192.168.60.11")},
		"service": webService(network, 0), "uplink": uplink,
		"reach": ControlPlane{Addrs: []netip.Addr{addr("192.168.2.10")}, Ports: []PortRange{{Proto: 6, Low: 9999, High: 9999}}, Tunnels: []uint16{4789}},
	}
}

// onlyLog are the parts of a flow that the log adds.
var onlyLog = regexp.MustCompile(`,?(load:(?:0x)?[0-9a-f]+->NXM_NX_CT_LABEL\[0\.\.31\]|move:OXM_OF_METADATA\[\]->NXM_NX_CT_LABEL\[32\.\.95\]|write_metadata:0x[0-9a-f]+(/0x[0-9a-f]+)?)`)

// TestLogDecidesNothing compares every flow with and without the log: it may add to what is
// remembered of a connection, and have what is dropped handed to the agent, and nothing else.
func TestLogDecidesNothing(t *testing.T) {
	for mode, set := range logModes() {
		without := newPipeline(t, set)
		set.FlowLog = LogPoliced
		with := newPipeline(t, set)
		denied := with.to(tableDenied)
		seen := 0
		for kind, o := range logObjects(mode) {
			have := map[of.FlowKey]of.Flow{}
			for _, f := range with.Program(o).Flows {
				have[f.Key()] = f
			}
			for _, f := range without.Program(o).Flows {
				now, ok := have[f.Key()]
				delete(have, f.Key())
				if !ok {
					t.Errorf("%s: %s is missing with the log: %s", mode, kind, f)
					continue
				}
				text := actionsOf(now)
				hand := fmt.Sprintf("goto_table:%d", denied)
				if strings.HasSuffix(text, hand) {
					seen++
					text = strings.TrimSuffix(strings.TrimSuffix(text, hand), ",")
					if text == "" {
						text = "drop"
					}
				}
				if text != actionsOf(f) {
					t.Errorf("%s: %s: with the log %s\nwithout %s", mode, kind, now, f)
				}
			}
			for _, f := range have {
				if f.Table != denied {
					if f.Instructions != "" && !strings.HasSuffix(actionsOf(f), fmt.Sprintf("goto_table:%d", denied)) || f.Priority != prioMiss {
						t.Errorf("%s: %s: only with the log: %s", mode, kind, f)
					}
					continue
				}
				if !regexp.MustCompile(`actions=meter:\d+,CONTROLLER:256$`).MatchString(f.String()) {
					t.Errorf("%s: %s: a denied packet goes elsewhere than to the agent within a rate: %s", mode, kind, f)
				}
			}
		}
		if seen < 15 {
			t.Errorf("%s: only %d flows hand denied packets over", mode, seen)
		}
	}
}

// actionsOf is what a flow does, without what the log adds.
func actionsOf(f of.Flow) string {
	_, actions, _ := strings.Cut(f.String(), "actions=")
	actions = strings.TrimPrefix(onlyLog.ReplaceAllString(actions, ""), ",")
	return strings.ReplaceAll(actions, "(,", "(")
}

func TestGoldenFlowsOfTheLog(t *testing.T) {
	for mode, set := range logModes() {
		set.FlowLog = LogAll
		set.EndpointPolicies, set.ConnectionRate, set.Host, set.DNS = true, 0, HostAccess{}, DNSSettings{}
		p := newPipeline(t, set)
		objects := logObjects(mode)
		golden(t, "log_"+mode+"_fixed", render(p, p.Program(objects["fixed"])))
		golden(t, "log_"+mode+"_endpoint", render(p, p.Program(objects["endpoint"])))
		golden(t, "log_"+mode+"_reach", render(p, p.Program(objects["reach"])))
		if mode != VXLANRouting.String() {
			continue
		}
		golden(t, "log_rule", render(p, p.Program(objects["rule"])))
		golden(t, "log_rule_reject", render(p, p.Program(objects["reject"])))
		golden(t, "log_rule_set", render(p, p.Program(objects["out"])))
		golden(t, "log_vrf_without_rules", render(p, p.Program(VRFPolicy{VRF: 1, Generation: 7, LogOnly: true})))
		set.ConnectionRate, set.Host = 5000, testAccess
		p = newPipeline(t, set)
		golden(t, "log_vrf_with_endpoint_policies", render(p, p.Program(VRFPolicy{VRF: 1, Generation: 7, EndpointPoliciesOnly: true, LogOnly: true})))
	}
}

// TestDeniedPackets: what a packet says is told as it is, whatever it says.
func TestDeniedPackets(t *testing.T) {
	frame := func(l ...gopacket.SerializableLayer) []byte {
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, l...); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	mac := func(last byte) []byte { return []byte{2, 2, 0, 0, 0, last} }
	eth := func(typ layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: mac(1), DstMAC: mac(2), EthernetType: typ}
	}
	ip4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 1, 1, 1}, DstIP: []byte{10, 1, 1, 2}}
	tcp := frame(eth(layers.EthernetTypeIPv4), ip4, &layers.TCP{SrcPort: 40000, DstPort: 81, SYN: true})
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: addr("2001:db8::1").AsSlice(), DstIP: addr("2001:db8::2").AsSlice()}
	mark := func(by Denial, number uint64) of.Match {
		return of.NewMatch().InPort(3).Metadata(uint64(by)<<metadataKind|number, ^uint64(0)).With(regVRF.is(5))
	}
	for name, c := range map[string]struct {
		data []byte
		in   of.Match
		want DeniedPacket
	}{
		"TCP": {tcp, mark(DeniedByRule, 77), DeniedPacket{
			By: DeniedByRule, Number: 77, Port: 3, VRF: 5, EthType: 0x800, Proto: 6,
			Src: netip.MustParseAddrPort("10.1.1.1:40000"), Dst: netip.MustParseAddrPort("10.1.1.2:81"),
		}},
		"UDP by IPv6": {frame(eth(layers.EthernetTypeIPv6), ip6, &layers.UDP{SrcPort: 9, DstPort: 53}), mark(DeniedByPolicyIn, 0), DeniedPacket{
			By: DeniedByPolicyIn, Port: 3, VRF: 5, EthType: 0x86dd, Proto: 17,
			Src: netip.MustParseAddrPort("[2001:db8::1]:9"), Dst: netip.MustParseAddrPort("[2001:db8::2]:53"),
		}},
		"cut short":       {tcp[:30], mark(DeniedBySource, 0), DeniedPacket{By: DeniedBySource, Port: 3, VRF: 5, EthType: 0x800}},
		"no frame at all": {nil, mark(DeniedByFrame, 0), DeniedPacket{By: DeniedByFrame, Port: 3, VRF: 5}},
		"another mark":    {nil, mark(numDenials, 4), DeniedPacket{Port: 3, VRF: 5}},
		"of a service": {tcp, of.NewMatch().InPort(3).With(regService.is(9)).With(regVIP.is(0x0a640001)), DeniedPacket{
			Port: 3, EthType: 0x800, Proto: 6, Src: netip.MustParseAddrPort("10.1.1.1:40000"), Dst: netip.MustParseAddrPort("10.1.1.2:81"),
			Frontend: 9, VIP: addr("10.100.0.1"),
		}},
	} {
		got := *parseDenied(&of.PacketIn{Match: c.in, Data: c.data})
		if !c.want.Src.IsValid() { // without ports, there are no valid pairs
			got.Src, got.Dst = c.want.Src, c.want.Dst
		}
		if got != c.want {
			t.Errorf("%s: %+v\nwant %+v", name, got, c.want)
		}
	}
}

// FuzzDeniedPacket: no packet stops the agent.
func FuzzDeniedPacket(f *testing.F) {
	f.Add([]byte{2, 2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 2, 8, 0, 0x45})
	f.Fuzz(func(_ *testing.T, data []byte) { parseDenied(&of.PacketIn{Match: of.NewMatch().InPort(1), Data: data}) })
}

// loggedFlows are those of a bridge whose connections are logged.
func loggedFlows(t *testing.T) map[string]Program {
	set := logModes()[VXLANRouting.String()]
	set.FlowLog, set.Kernel = LogAll, true
	p := newPipeline(t, set)
	out := map[string]Program{"log only": p.Program(VRFPolicy{VRF: 9, Generation: 5, LogOnly: true})}
	for kind, o := range logObjects(VXLANRouting.String()) {
		out[kind] = p.Program(o)
	}
	delete(out, "reject") // the same match as the denial, at another priority
	return out
}
