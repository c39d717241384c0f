package ofnet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

var testControl = ControlPlane{
	Addrs:   []netip.Addr{addr("192.168.2.10"), addr("10.2.1.200"), addr("2001:db8:2::10")},
	Ports:   []PortRange{{of.ProtoTCP, 2379, 2380}, {of.ProtoTCP, 9090, 9090}, {of.ProtoUDP, 8301, 8302}},
	Tunnels: []uint16{4789},
}

// Packets from containers to hosts through the hosts' links, and through their own host.
func TestTraceReach(t *testing.T) {
	sw := ovstest.Start(t)
	vl := newPipeline(t, Settings{Encap: VLAN, Round: 1})
	programs := bridgedFlows(vl)
	within := vlNet1
	within.Subnet4 = netip.MustParsePrefix("10.2.1.0/24")
	programs["net/"+vlNet1.ID], programs["reach"] = vl.Program(within), vl.Program(testControl)
	realBridge(t, sw, "vlan", programs)
	vr := vlrouter(t)
	programs = uplinkFlows(vr)
	programs["reach"] = vr.Program(testControl)
	realBridge(t, sw, "vlrouter", programs)
	host, programs := hostFlows(t, hostModes["vrouter"])
	programs["reach"] = host.Program(testControl)
	realBridge(t, sw, "vrouter", programs)
	for _, b := range []string{"vlan", "vlrouter", "vrouter"} {
		sw.AddDummyPort(b, b+"-p1", "1")
		sw.AddDummyPort(b, b+"-p2", "2")
	}
	sw.AddDummyPort("vlan", "vlan-up", "65010")
	sw.AddDummyPort("vlrouter", "vlrouter-up", "65010")
	sw.AddDummyPort("vrouter", "vrouter-host", fmt.Sprint(testHostPort))

	const (
		bridged = "in_port=1,dl_src=02:02:0a:02:01:01,dl_dst=02:00:00:00:00:01,"
		routed  = "in_port=1,dl_src=02:02:0a:03:01:01,dl_dst=00:00:11:11:11:11,"
		world   = "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=00:00:11:11:11:11,"
	)
	for _, c := range []struct {
		bridge, name, packet string
		leaves               bool
	}{
		{"vlan", "a port of the control plane", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,tcp_dst=9090", false},
		{"vlan", "the last of a range", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,tcp_dst=2380", false},
		{"vlan", "behind the range", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,tcp_dst=2381", true},
		{"vlan", "of the other protocol", bridged + "udp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,udp_dst=9090", true},
		{"vlan", "by UDP", bridged + "udp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,udp_dst=8302", false},
		{"vlan", "another port of the host", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.10,tcp_dst=22", true},
		{"vlan", "the port of somebody else", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=192.168.2.99,tcp_dst=9090", true},
		{"vlan", "a host in the network", bridged + "tcp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=10.2.1.200,tcp_dst=9090", false},
		{"vlan", "a tunnel to a host in the network", bridged + "udp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=10.2.1.200,udp_dst=8301", false},
		{"vlan", "a tunnel to outside", bridged + "udp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=198.51.100.1,udp_dst=4789", false},
		{"vlan", "a tunnel within the network", bridged + "udp,nw_ttl=64,nw_src=10.2.1.1,nw_dst=10.2.1.99,udp_dst=4789", true},
		{"vlan", "from outside", "in_port=65010,dl_vlan=101,dl_src=02:00:00:00:00:01,dl_dst=02:02:0a:02:01:01,tcp,nw_src=198.51.100.1,nw_dst=192.168.2.10,tcp_dst=9090", true},
		{"vlrouter", "a port of the control plane", routed + "tcp,nw_ttl=64,nw_src=10.3.1.1,nw_dst=192.168.2.10,tcp_dst=9090", false},
		{"vlrouter", "another port of the host", routed + "tcp,nw_ttl=64,nw_src=10.3.1.1,nw_dst=192.168.2.10,tcp_dst=22", true},
		{"vlrouter", "a tunnel to outside", routed + "udp,nw_ttl=64,nw_src=10.3.1.1,nw_dst=198.51.100.1,udp_dst=4789", false},
		{"vlrouter", "an endpoint's own port", routed + "tcp,nw_ttl=64,nw_src=10.3.1.1,nw_dst=10.3.1.2,tcp_dst=9090", true},
		{"vlrouter", "a tunnel to an endpoint", routed + "udp,nw_ttl=64,nw_src=10.3.1.1,nw_dst=10.3.1.2,udp_dst=4789", true},
		{"vrouter", "a tunnel to outside", world + "udp,nw_ttl=64,nw_src=10.1.1.1,nw_dst=198.51.100.1,udp_dst=4789", false},
		{"vrouter", "a tunnel to the host", world + "udp,nw_ttl=64,nw_src=10.1.1.1,nw_dst=172.19.255.254,udp_dst=4789", false},
		{"vrouter", "to outside", world + "udp,nw_ttl=64,nw_src=10.1.1.1,nw_dst=198.51.100.1,udp_dst=4790", true},
		{"vrouter", "a tunnel to an endpoint", world + "udp,nw_ttl=64,nw_src=10.1.1.1,nw_dst=10.1.1.2,udp_dst=4789", true},
	} {
		t.Run(c.bridge+" "+c.name, func(t *testing.T) {
			trace := sw.Trace(c.bridge, c.packet)
			if got := strings.Contains(trace, "output:") || strings.Contains(trace, "NORMAL"); got != c.leaves {
				t.Errorf("leaves %t, expected %t:\n%s", got, c.leaves, trace)
			}
		})
	}
}
