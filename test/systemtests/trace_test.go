package systemtests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/test/lab"
)

// trace asks netctl what becomes of a packet.
func (c cluster) trace(args ...string) traceapi.Trace {
	c.t.Helper()
	var tr traceapi.Trace
	if text := c.netctl(append([]string{"trace", "--json"}, args...)...); json.Unmarshal([]byte(text), &tr) != nil {
		c.t.Fatalf("netctl trace %v: %s", args, text)
	}
	return tr
}

// hostsOf lists the hosts that a packet comes to.
func hostsOf(hops []traceapi.Hop) string {
	var names []string
	for _, h := range hops {
		names = append(names, h.Host)
	}
	return strings.Join(names, " ")
}

// TestTrace: netctl trace tells of packets what becomes of them, in every mode, across
// hosts and back.
func TestTrace(t *testing.T) {
	for _, mode := range []struct {
		name, lab, net, fwd string
		between             string // kind of the end on the way to another host
	}{
		{"vxlan routing", "vxlan", "vxlan", "routing", traceapi.Tunnelled},
		{"vxlan bridge", "vlan", "vxlan", "bridge", traceapi.Tunnelled},
		{"vlan routing", "vlan", "vlan", "routing", traceapi.Uplinked},
		{"vlan bridge", "vlan", "vlan", "bridge", traceapi.Uplinked},
	} {
		t.Run(mode.name, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, NetMode: mode.lab, FwdMode: mode.fwd})
			c.netctl("net", "create", "net", "--encap", mode.net, "--pkt-tag", "101", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
			c.netctl("policy", "create", "guard")
			c.netctl("group", "create", "net", "web", "--policy", "guard")
			c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=tcp", "--action=deny")
			c.netctl("policy", "rule-add", "guard", "2", "--direction=in", "--protocol=tcp", "--port=80", "--action=allow", "--priority=10", "--wait")
			c.attach("host1", "client", "net")
			near := c.attachGroup("host1", "near", "net", "web")
			far := c.attachGroup("host2", "far", "net", "web")
			c.reaches("client", far.IPv4) // MAC addresses are learned
			c.reaches("client", near.IPv4)

			arrives := func(hosts, back string, args ...string) {
				t.Helper()
				tr := c.trace(append([]string{"--from", "client"}, args...)...)
				if !tr.Arrives || hostsOf(tr.Request) != hosts || hostsOf(tr.Reply) != back {
					t.Errorf("%v: arrives %t by %q and back by %q: %s", args, tr.Arrives, hostsOf(tr.Request), hostsOf(tr.Reply), tr.Verdict)
				}
				if text := fmt.Sprint(tr.Request, tr.Reply); strings.Contains(text, "not let in") {
					t.Errorf("%v: a packet that arrives was not let in on its way: %s", args, text)
				}
				if len(tr.Request) == 2 && tr.Request[0].Ends[0].Kind != mode.between {
					t.Errorf("%v: between the hosts: %+v", args, tr.Request[0].Ends)
				}
			}
			arrives("host1", "host1", "--to", "near")
			arrives("host1 host2", "host2 host1", "--to", "far")
			arrives("host1 host2", "host2 host1", "--to", far.IPv6)
			arrives("host1 host2", "host2 host1", "--to", "far", "--port", "80", "--ipv6")
			arrives("host1 host2", "host2 host1", "--to", far.ContainerID, "--proto", "udp", "--port", "9")

			tr := c.trace("--from", "client", "--to", "far", "--port", "81")
			const rule = "rule default:guard:1 of policy guard, group web of tenant default denies it"
			if tr.Arrives || tr.Verdict != "the packet is dropped on host host1: "+rule {
				t.Errorf("what a rule denies: %q", tr.Verdict)
			}
			if got := c.trace("--from", "client", "--to", "far", "--port", "80"); !strings.Contains(fmt.Sprint(got.Request), "rule default:guard:2 of policy guard, group web of tenant default allows it") {
				t.Errorf("no rule is named for what one allows: %+v", got.Request)
			}
			if mode.fwd == "routing" {
				if tr := c.trace("--from", "client", "--to", "10.1.1.77"); tr.Arrives || !strings.HasPrefix(tr.Verdict, "the packet is dropped on host host1: ") {
					t.Errorf("to an address that nobody has: %q", tr.Verdict)
				}
				if tr := c.trace("--from", "client", "--to", "10.1.1.254"); !tr.Arrives {
					t.Errorf("to the gateway: %q", tr.Verdict)
				}
			}
			for _, c2 := range []struct{ from, to, want string }{
				{"nobody", "far", `from: no endpoint "nobody"`}, {"client", "nobody", `to: no endpoint "nobody"`}, {"10.9.9.9", "far", "no endpoint has the address 10.9.9.9"},
			} {
				out, err := c.NetctlOutput(t.Context(), "trace", "--from", c2.from, "--to", c2.to)
				if err == nil || !strings.Contains(out+err.Error(), c2.want) {
					t.Errorf("from %s to %s: %v %s", c2.from, c2.to, err, out)
				}
			}
			if mode.name == "vxlan routing" {
				c.traceWithoutAgent(far)
			}
		})
	}
}

// traceWithoutAgent: a trace that comes to a host without agent ends there and says so;
// one that would begin there is refused.
func (c cluster) traceWithoutAgent(far lab.Container) {
	c.t.Helper()
	h, err := c.Host(far.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := h.StopDaemon(c.t.Context(), "netplugin", 9); err != nil {
		c.t.Fatal(err)
	}
	tr := c.trace("--from", "client", "--to", far.Name)
	if tr.Arrives || !strings.Contains(tr.Verdict, "ask host host2: ") {
		c.t.Errorf("without an agent on the other host: %q", tr.Verdict)
	}
	if out, err := c.NetctlOutput(c.t.Context(), "trace", "--from", far.Name, "--to", "client"); err == nil || !strings.Contains(out+err.Error(), "ask host host2: ") {
		c.t.Errorf("from a host without an agent: %v %s", err, out)
	}
}
