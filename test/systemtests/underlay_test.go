package systemtests

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/lab"
)

// vxlanDatagram is what is in the UDP datagram that carries a frame to a container: UDP
// from an address of its network.
func vxlanDatagram(vni uint32, to lab.Container, from string, payload []byte) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(from).To4(), DstIP: net.ParseIP(to.IPv4).To4()}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 1000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	return serialize(
		&layers.VXLAN{ValidIDFlag: true, VNI: vni},
		&layers.Ethernet{SrcMAC: net.HardwareAddr{0, 0, 0x11, 0x11, 0x11, 0x11}, DstMAC: hardware(to.MAC), EthernetType: layers.EthernetTypeIPv4},
		ip, udp, gopacket.Payload(payload),
	)
}

// sendUDP sends a datagram, from a source address unless that is empty.
func (c cluster) sendUDP(where, from, to string, payload []byte) {
	c.t.Helper()
	err := c.inside(where, func() error {
		var local *net.UDPAddr
		if from != "" {
			local = &net.UDPAddr{IP: net.ParseIP(from)}
		}
		conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write(payload)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// metric reads a metric of an agent; 0 when it is not exported.
func (c cluster) metric(host, name string) int {
	c.t.Helper()
	m := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + " (.+)$").FindStringSubmatch(c.metrics(host, "9090"))
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return int(n)
}

const foreignPackets = `contiv_ovs_foreign_tunnel_packets_total{bridge="contivVxlanBridge"}`

// TestForeignTunnelPackets: what claims to be a frame of a network counts only from
// tunnel addresses of hosts; neither neighbors on the underlay nor containers can make
// one that arrives.
func TestForeignTunnelPackets(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "-p", "5000")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254")
	web := c.attach("host1", "web", "front")
	near, far := c.attach("host2", "near", "front"), c.attach("host1", "far", "blue/front")
	c.attach("host2", "blue", "blue/front")
	c.reaches("near", web.IPv4)
	c.reaches("blue", far.IPv4)
	seen := c.wire("web", "eth0")
	const there = "192.168.60.10:4789"
	frame := func(content string) []byte { return vxlanDatagram(5000, web, near.IPv4, []byte(content)) }

	t.Run("from a host's tunnel address", func(t *testing.T) { // else the frame itself would be wrong
		c := cluster{c.Lab, t}
		c.sendUDP("host2", "192.168.60.11", there, frame("from a host"))
		c.waits(seen, []byte("from a host"), "a frame from a host")
	})
	t.Run("from another address of the underlay", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.run("host2", "ip addr add 192.168.60.77/24 dev "+c.Config().TunnelInterface())
		before := c.metric("host1", foreignPackets)
		const sent = 5
		for i := range sent {
			c.sendUDP("host2", "192.168.60.77", there, frame(fmt.Sprint("foreign ", i)))
		}
		c.eventually("they are counted", func() error {
			if n := c.metric("host1", foreignPackets) - before; n < sent {
				return fmt.Errorf("%s went up by %d, expected %d", foreignPackets, n, sent)
			}
			return nil
		})
		if f := seen.saw([]byte("foreign")); f != nil {
			t.Errorf("a frame from nobody's tunnel address has arrived: %x", f)
		}
	})
	t.Run("a container's own", func(t *testing.T) {
		c := cluster{c.Lab, t}
		cable := c.wire("host1", "eth1")
		c.sendUDP("blue", "", there, frame("a container's"))
		// What is sent later on the same way is there: so would be what was sent before.
		c.sendUDP("blue", "", "192.168.60.10:4790", []byte("another port"))
		c.waits(cable, []byte("another port"), "a datagram to another port")
		for _, w := range []*wire{cable, seen} {
			if f := w.saw([]byte("a container's")); f != nil {
				t.Errorf("seen on %s: %x", w.name, f)
			}
		}
	})
	t.Run("a new host", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if err := c.PowerOff(t.Context(), "host2"); err != nil {
			t.Fatal(err)
		}
		// As when it has never been there.
		c.deleteKey(state.HostRoot + "host2")
		c.becomes("host1", "! ovs-ofctl -O OpenFlow13 dump-flows "+vxlanBridge+" | grep tun_src=192.168.60.11")
		before := c.metric("host1", foreignPackets)
		if err := c.PowerOn(t.Context(), "host2"); err != nil {
			t.Fatal(err)
		}
		c.attach("host2", "fresh", "front")
		c.reaches("fresh", web.IPv4)
		if n := c.metric("host1", foreignPackets) - before; n != 0 {
			t.Errorf("%d packets of the new host were taken for foreign ones", n)
		}
	})
}

// deleteKey deletes a key of the embedded store, behind everybody's back.
func (c cluster) deleteKey(key string) {
	c.t.Helper()
	h, err := c.Host("host1")
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + h.ControlIP() + ":2379"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return h.Dial(ctx, "tcp", address)
		})},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	resp, err := client.Delete(c.t.Context(), key)
	if err != nil || resp.Deleted != 1 {
		c.t.Fatalf("delete %s: %v, %v", key, resp, err)
	}
}
