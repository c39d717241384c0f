package systemtests

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// seen waits until a container gets a frame that the filter lets through, while it is
// being pinged.
func (c cluster) seen(what, from string, to lab.Container, address, filter string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	var out buffer
	dump, err := c.Start(ctx, to.Name, lab.Stdio{Out: &out, Err: &out}, "tcpdump", "-l", "-n", "-v", "-c", "1", "--immediate-mode", "-i", "eth0", filter)
	if err != nil {
		c.t.Fatal(err)
	}
	ping, err := c.Start(context.WithoutCancel(ctx), from, lab.Stdio{}, "ping", "-n", "-i", "0.05", address)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = ping.Process.Signal(syscall.SIGINT); _ = ping.Wait() }()
	if err := dump.Wait(); err != nil { // it ends with its frame
		c.t.Errorf("%s: no frame with %q comes: %v\n%s", what, filter, err, out.String())
	}
}

// megabits measures what a container receives, over some seconds, in Mbit/s.
func (c cluster) megabits(name string) float64 {
	c.t.Helper()
	const stats = "/sys/class/net/eth0/statistics/rx_bytes"
	out := c.run(name, "a=$(cat "+stats+"); s=$(date +%s%N); sleep 3; b=$(cat "+stats+"); e=$(date +%s%N); echo $((b-a)) $((e-s))")
	var bytes, took float64
	if _, err := fmt.Sscan(out, &bytes, &took); err != nil {
		c.t.Fatalf("counters of %s: %q", name, out)
	}
	return bytes * 8 * 1000 / took
}

// held holds that a container that is sent more than rate Mbit/s gets that, within 15 %.
// A busy machine may make it less for a time, but never more.
func (c cluster) held(name string, rate float64) {
	c.t.Helper()
	var got float64
	for range 8 {
		if got = c.megabits(name); got > 1.15*rate {
			c.t.Errorf("%s receives %.1f Mbit/s, the limit is %.1f", name, got, rate)
			return
		}
		if got > 0.85*rate {
			return
		}
	}
	c.t.Errorf("%s receives %.1f Mbit/s at most, the limit is %.1f", name, got, rate)
}

// TestQoS: what the containers of a group send is marked as its net profile says, what
// they send and receive is limited, and a change of the profile holds at once.
func TestQoS(t *testing.T) {
	for _, mode := range []struct{ encap, forward string }{{"vxlan", "routing"}, {"vlan", "bridge"}} {
		t.Run(mode.encap+" "+mode.forward, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, NetMode: mode.encap, FwdMode: mode.forward})
			c.netctl("net", "create", "net", "--encap", mode.encap, "--pkt-tag", "101", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
			c.netctl("netprofile", "create", "gold", "--dscp", "46", "--bandwidth", "10mbps")
			c.netctl("group", "create", "net", "web", "--networkprofile", "gold", "--wait")
			a := c.attachGroup("host1", "a", "net", "web")
			b := c.attachGroup("host2", "b", "net", "web")
			// The traffic class is the DSCP and two bits more (RFC 2474 section 3): 46 is 0xb8.
			c.seen("IPv4", "a", b, b.IPv4, "icmp[icmptype] = icmp-echo and ip[1] & 0xfc = 0xb8")
			c.seen("IPv6", "a", b, b.IPv6, "icmp6 and ip6[40] = 128 and ip6[0:2] & 0x0fc0 = 0x0b80")
			c.seen("the other direction", "b", a, a.IPv4, "icmp[icmptype] = icmp-echo and ip[1] & 0xfc = 0xb8")

			mega := 1.048576 // the unit of profiles, in Mbit
			for _, way := range []struct {
				from string
				to   lab.Container
			}{{"a", b}, {"b", a}} {
				flood := c.flood(way.from, way.to)
				c.held(way.to.Name, 10*mega)
				if way.from == "a" {
					c.netctl("netprofile", "create", "gold", "--dscp", "10", "--bandwidth", "20mbps", "--wait")
					c.held(way.to.Name, 20*mega)
					c.netctl("netprofile", "create", "gold", "--dscp", "10", "--bandwidth", "10mbps", "--wait")
				}
				flood()
			}
			// Who is not limited cannot send more to a container than that may receive.
			c.attach("host1", "free", "net")
			flood := c.flood("free", b)
			c.held("b", 10*mega)
			flood()
			c.seen("changed", "a", b, b.IPv4, "icmp[icmptype] = icmp-echo and ip[1] & 0xfc = 0x28")
		})
	}
}

// flood has a container send another one datagrams, 60 Mbit/s, until it is told to end.
func (c cluster) flood(from string, to lab.Container) (end func()) {
	c.t.Helper()
	serverEnds := c.serve(to.Name)
	cmd, err := c.Start(context.WithoutCancel(c.t.Context()), from, lab.Stdio{}, "iperf3", "--client", to.IPv4, "--udp", "--bitrate", "60M", "--length", "1200", "--time", "600")
	if err != nil {
		c.t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		serverEnds()
	}
	c.t.Cleanup(end)
	c.eventually("datagrams", func() error {
		if out := c.run(to.Name, "cat /sys/class/net/eth0/statistics/rx_packets; sleep 0.1; cat /sys/class/net/eth0/statistics/rx_packets"); !grows(out, 10) {
			return fmt.Errorf("counters %q", out)
		}
		return nil
	})
	return end
}

// grows reports whether the second of two numbers exceeds the first by so much.
func grows(text string, by int) bool {
	var a, b int
	n, _ := fmt.Sscan(text, &a, &b)
	return n == 2 && b-a >= by
}
