package ofnet

import (
	"fmt"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// snatFlows is a routed VXLAN whose host reaches containers of other hosts.
func snatFlows(t *testing.T) (*Pipeline, Network, map[string]Program) {
	access := testAccess
	access.NodeSNAT4, access.NodeSNAT6 = addr("192.0.2.10"), addr("fd63:6f6e:7469:ffff::c000:20a")
	p := newPipeline(t, Settings{Encap: VXLAN, Routing: true, Round: 1, Host: access, TunnelPort: testTunnelPort})
	meant := within(vxNet1)
	meant.OwnsAddresses = true
	flows := map[string]Program{"fixed": p.Program(Base{}), "peer": p.Program(Peer{VTEP: addr("198.51.100.7")}), "host": p.Program(HostPort{Port: testHostPort}), "net": p.Program(meant), "other": p.Program(within(vxOther))}
	for _, e := range []Endpoint{known(local1, true), known(red, false), remote1} {
		flows["ep/"+e.ID] = p.Program(e)
	}
	return p, meant, flows
}

func TestGoldenFarHosts(t *testing.T) {
	p, meant, _ := snatFlows(t)
	golden(t, "host_snat_network", render(p, p.Program(meant)))
	golden(t, "host_snat_fixed", render(p, p.Program(Base{})))
}

// Decisions of a real switch about packets between a host and containers of other hosts.
func TestTraceFarHosts(t *testing.T) {
	sw := ovstest.Start(t)
	_, _, flows := snatFlows(t)
	realBridge(t, sw, "far", flows)
	sw.AddDummyPort("far", "far-p1", "1")
	sw.AddDummyPort("far", "far-host", fmt.Sprint(testHostPort))
	const (
		host   = "in_port=65001,dl_src=02:02:ac:13:ff:fe,dl_dst=02:02:ac:13:ff:fe,"
		tunnel = "in_port=65000,tun_id=10001,tun_src=198.51.100.7,"
		marked = "dl_src=02:02:ac:13:ff:fe,dl_dst=00:00:11:11:11:11,"
		back   = "dl_src=00:00:11:11:11:11,dl_dst=02:02:ac:13:ff:fe,"
		noted  = "move:NXM_NX_TUN_IPV4_SRC[]->NXM_NX_CT_LABEL[0..31]"
	)
	for _, c := range []struct {
		name, packet string
		want, not    []string
	}{
		{"to a container of another host", host + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.3", []string{"nat(src=192.0.2.10)", "->tun_dst", "output port is 65000"}, []string{"dec_ttl"}},
		{"the same by IPv6", host + "tcp6,ipv6_src=fd63:6f6e:7469:ac13::fffe,ipv6_dst=2001:db8:1::3", []string{"nat(src=fd63:6f6e:7469:ffff::c000:20a)"}, nil},
		{"to a container of this host: as ever", host + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.1", []string{"output port is 1"}, []string{"192.0.2.10"}},
		{"to nobody", host + "tcp,nw_src=172.19.255.254,nw_dst=10.1.1.77", []string{"drop"}, []string{"output"}},
		{"from another host", tunnel + marked + "tcp,nw_src=192.0.2.11,nw_dst=10.1.1.1,nw_ttl=64", []string{noted, "output port is 1"}, []string{"output:65001"}},
		{"from a container of another host", tunnel + "dl_src=00:00:11:11:11:11,dl_dst=00:00:11:11:11:11,tcp,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"output port is 1"}, []string{noted}},
		{"an answer to this host", tunnel + back + "tcp,nw_src=10.1.1.3,nw_dst=192.0.2.10,nw_ttl=64", []string{"ct(table=", "zone=16385,nat)", "output:65001"}, []string{"output port is 65000"}},
		{"a container to another host's address: through this host", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=00:00:11:11:11:11,tcp,nw_ttl=64,nw_src=10.1.1.1,nw_dst=192.0.2.11", []string{"nat(src=172.19.0.1)", "output:65001"}, []string{"output port is 65000"}},
	} {
		t.Run(c.name, func(t *testing.T) { checkTrace(t, sw.Trace("far", c.packet), c.want, c.not) })
	}
}
