package ofnet

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

const testHostPort = 65001

var testAccess = HostAccess{
	MAC: MAC{2, 2, 172, 19, 255, 254}, Addr4: addr("172.19.255.254"), Addr6: addr("fd63:6f6e:7469:ac13::fffe"),
	Subnet4: netip.MustParsePrefix("172.19.0.0/16"), Subnet6: netip.MustParsePrefix("fd63:6f6e:7469:ac13::/64"),
	Pass4: addr("172.19.255.253"), Pass6: addr("fd63:6f6e:7469:ac13::fffd"),
}

// known gives an endpoint of this host its private addresses; direct says whether it owns
// its own address on the host.
func known(e Endpoint, direct bool) Endpoint {
	e.Private4 = addr(fmt.Sprintf("172.19.0.%d", e.Port))
	e.Private6 = addr(fmt.Sprintf("fd63:6f6e:7469:ac13::%d", e.Port))
	e.OwnsIPv4, e.OwnsIPv6 = direct, direct && e.IPv6.IsValid()
	return e
}

// within gives a network its subnets.
func within(n Network) Network {
	n.Subnet4 = netip.PrefixFrom(n.Gateway4, 24).Masked()
	if n.Gateway6.IsValid() {
		n.Subnet6 = netip.PrefixFrom(n.Gateway6, 64).Masked()
	}
	return n
}

func hostFlows(t *testing.T, set Settings) (*Pipeline, map[string]Program) {
	set.Round, set.Host, set.TunnelPort = 1, testAccess, testTunnelPort
	p := newPipeline(t, set)
	flows := map[string]Program{"fixed": p.Program(Base{}), "host": p.Program(HostPort{Port: testHostPort})}
	networks, endpoints := []Network{vxNet1, vxOther}, []Endpoint{known(local1, true), known(policed(local1b), true), known(red, false), remote1}
	if set.Encap == VLAN {
		networks, endpoints = []Network{vlNet1}, []Endpoint{known(vl1, true), known(policed(vl2), true), vlFar}
	}
	for _, n := range networks {
		flows["net/"+n.ID] = p.Program(within(n))
	}
	for _, e := range endpoints {
		flows["ep/"+e.ID] = p.Program(e)
	}
	return p, flows
}

func TestGoldenHostAccess(t *testing.T) {
	for name, set := range hostModes {
		p, flows := hostFlows(t, set)
		golden(t, "host_"+name+"_port", render(p, flows["host"]))
		if set.Encap == VXLAN {
			golden(t, "host_"+name+"_network", render(p, p.Program(within(vxNet1))))
			golden(t, "host_"+name+"_endpoint", render(p, p.Program(known(local1, true))))
		} else {
			golden(t, "host_"+name+"_endpoint", render(p, p.Program(known(vl1, true))))
		}
	}
	p, _ := hostFlows(t, hostModes["vrouter"])
	golden(t, "host_vrouter_fixed", render(p, p.Program(Base{})))
	golden(t, "host_vrouter_endpoint_private", render(p, p.Program(known(red, false))))
}

var hostModes = map[string]Settings{
	"vrouter":  {Encap: VXLAN, Routing: true},
	"vxlan":    {Encap: VXLAN},
	"vlan":     {Encap: VLAN},
	"vlrouter": {Encap: VLAN, Routing: true},
}

// Decisions of a real switch about packets between the host and its containers.
func TestTraceHostAccess(t *testing.T) {
	sw := ovstest.Start(t)
	for name, set := range hostModes {
		p, flows := hostFlows(t, set)
		flows["svc"] = p.Program(Service{ID: "api", VRF: local1.VRF, Frontends: []Frontend{{
			Number: 7, Proto: 6, Addr: netip.MustParseAddrPort("10.96.0.1:443"),
			Providers: []Provider{{Addr: netip.MustParseAddrPort("192.0.2.9:6443")}},
		}}})
		realBridge(t, sw, name, flows)
		for i := range 4 {
			sw.AddDummyPort(name, fmt.Sprintf("%s-p%d", name, i+1), fmt.Sprint(i+1))
		}
		sw.AddDummyPort(name, name+"-host", fmt.Sprint(testHostPort))
	}
	const (
		in       = "in_port=65001,dl_src=02:02:ac:13:ff:fe,dl_dst=02:02:ac:13:ff:fe,"
		a        = "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=00:00:11:11:11:11,tcp,nw_ttl=64,nw_src=10.1.1.1,nw_dst="
		redFrom  = "in_port=4,dl_src=02:02:0a:01:01:02,dl_dst=00:00:11:11:11:11,tcp,nw_ttl=64,nw_src=10.1.1.2,nw_dst="
		v        = "in_port=1,dl_src=02:02:0a:02:01:01,dl_dst=02:00:00:00:00:01,tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst="
		ask      = "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_sha=02:02:0a:01:01:01,arp_tpa="
		hostSees = "set_field:02:02:ac:13:ff:fe->eth_dst"
		toHost   = "output:65001"
	)
	for _, c := range []struct {
		bridge, name, packet string
		want, not            []string
	}{
		{"vrouter", "host to a container's own address", in + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.1", []string{"set_field:02:02:0a:01:01:01->eth_dst", "output port is 1"}, []string{"nat", "output port is 4"}},
		{"vrouter", "host to an address of two tenants", in + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.2", []string{"output port is 2"}, []string{"output port is 4"}},
		{"vrouter", "host to a private address", in + "tcp,nw_src=172.19.255.254,nw_dst=172.19.0.4", []string{"nat(dst=10.1.1.2)", "output port is 4"}, nil},
		{"vrouter", "host to a private address of IPv6", in + "tcp6,ipv6_src=fd63:6f6e:7469:ac13::fffe,ipv6_dst=fd63:6f6e:7469:ac13::1", []string{"nat(dst=2001:db8:1::1)", "output port is 1"}, nil},
		{"vrouter", "host to nobody", in + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.77", []string{"drop"}, []string{"output"}},
		{"vrouter", "answer of a service on a host", in + "tcp,nw_src=192.0.2.9,tp_src=6443,nw_dst=172.19.0.1", []string{"nat(dst=10.1.1.1)", "zone=NXM_NX_REG6[0..15],nat)", "output port is 1"}, []string{"dec_ttl"}},
		{"vrouter", "container to the host", a + "172.19.255.254", []string{hostSees, "dec_ttl", toHost}, []string{"nat(src"}},
		{"vrouter", "container the host does not know, to the host", redFrom + "172.19.255.254", []string{hostSees, "nat(src=172.19.0.4)", toHost}, nil},
		{"vrouter", "container to the world", a + "192.0.2.1", []string{hostSees, "nat(src=172.19.0.1)", toHost}, nil},
		{"vrouter", "container to another private address", a + "172.19.0.4", []string{"drop"}, []string{toHost}},
		{"vrouter", "container to nobody in its networks", a + "10.1.1.77", []string{"drop"}, []string{toHost}},
		{"vrouter", "container to multicast", a + "239.1.1.1", []string{"drop"}, []string{toHost}},
		{"vrouter", "container to link-local", a + "169.254.169.254", []string{"drop"}, []string{toHost}},
		{"vrouter", "container to a container", a + "10.1.1.3", []string{"->tun_dst"}, []string{toHost}},
		{"vrouter", "from a tunnel to the world", "in_port=65000,tun_id=10001,dl_src=02:02:0a:01:01:03,tcp,nw_src=10.1.1.3,nw_dst=192.0.2.1,nw_ttl=64", []string{"drop"}, []string{toHost}},
		{"vxlan", "host to a container", in + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.1", []string{"set_field:02:02:0a:01:01:01->eth_dst", "output port is 1"}, nil},
		{"vxlan", "container to the host", a + "172.19.255.254", []string{hostSees, toHost}, []string{"group:"}},
		{"vxlan", "container to the world: there is no way", a + "192.0.2.1", nil, []string{toHost}},
		{"vxlan", "the gateway answers", ask + "10.1.1.254", []string{"set_field:00:00:11:11:11:11->eth_src", "IN_PORT"}, []string{"group:"}},
		{"vxlan", "the host answers", ask + "172.19.255.254", []string{"IN_PORT"}, []string{"group:"}},
		{"vlan", "host to a container", in + "tcp,nw_src=172.19.255.254,nw_dst=10.2.1.1", []string{"output port is 1"}, nil},
		{"vlan", "container to the host", v + "172.19.255.254", []string{hostSees, toHost}, []string{"NORMAL"}},
		{"vlan", "container to the world, by its router", v + "192.0.2.1", []string{"NORMAL"}, []string{toHost}},
		{"vlrouter", "host to a container", in + "tcp,nw_src=172.19.255.254,nw_dst=10.2.1.1", []string{"output port is 1"}, nil},
		{"vlrouter", "container to the host", v + "172.19.255.254", []string{hostSees, toHost}, nil},
	} {
		t.Run(c.bridge+" "+c.name, func(t *testing.T) { checkTrace(t, sw.Trace(c.bridge, c.packet), c.want, c.not) })
	}
}

// TestTraceHostAndTracked: connections between the host and a container are tracked in the
// zone of the container's connections only; otherwise replies would have no connection.
func TestTraceHostAndTracked(t *testing.T) {
	const committed = "ct(commit,zone=NXM_NX_REG2[0..15]"
	guarded, free, red := known(local1b, true), known(local1, true), known(red, true)
	free.IPv6, red.Policed = netip.Addr{}, true
	settings := Settings{Encap: VXLAN, Routing: true, Round: 1, EndpointPolicies: true, Host: testAccess, TunnelPort: testTunnelPort}
	p := newPipeline(t, settings)
	looked := fmt.Sprint("ct(table=", p.to(tableHostTrack))
	sw := ovstest.Start(t)
	realBridge(t, sw, "br", map[string]Program{
		"fixed": p.Program(Base{}), "host": p.Program(HostPort{Port: testHostPort}), "net": p.Program(within(vxNet1)),
		"guarded": p.Program(guarded), "free": p.Program(free), "red": p.Program(red),
		"guard": p.Program(EndpointPolicy{Endpoint: guarded}), "vrf": p.Program(VRFPolicy{VRF: guarded.VRF, EndpointPoliciesOnly: true}),
		"vrf red": p.Program(VRFPolicy{VRF: red.VRF}),
	})
	for i := range 4 {
		sw.AddDummyPort("br", fmt.Sprintf("p%d", i+1), fmt.Sprint(i+1))
	}
	sw.AddDummyPort("br", "host", fmt.Sprint(testHostPort))
	const host, port = "in_port=65001,dl_src=02:02:ac:13:ff:fe,dl_dst=02:02:ac:13:ff:fe,tcp,nw_src=172.19.255.254,nw_dst=", "-> output port is "
	from := func(e Endpoint) string {
		return fmt.Sprintf("in_port=%d,dl_src=%s,dl_dst=00:00:11:11:11:11,tcp,nw_ttl=64,nw_src=%s,nw_dst=172.19.255.254", e.Port, e.MAC, e.IPv4)
	}
	for _, c := range []struct {
		name, packet string
		want, not    []string
	}{
		{"host to a guarded container", host + guarded.IPv4.String(), []string{looked, committed, port + fmt.Sprint(guarded.Port)}, nil},
		{"host to a container without guard", host + free.IPv4.String(), []string{port + fmt.Sprint(free.Port)}, []string{looked, committed}},
		{"host to a container under rules", host + known(red, true).Private4.String(), []string{looked, committed, port + fmt.Sprint(red.Port)}, nil},
		{"guarded container to the host", from(guarded), []string{committed, "output:65001"}, nil},
		{"container without guard to the host", from(free), []string{"output:65001"}, []string{committed}},
	} {
		t.Run(c.name, func(t *testing.T) { checkTrace(t, sw.Trace("br", c.packet), c.want, c.not) })
	}
}
