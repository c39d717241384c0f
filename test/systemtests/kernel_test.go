//go:build vm

package systemtests

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
)

// TestKernelDatapath: what only the datapath of the kernel has. Other tests of this package
// run on it too; make test-vm says which.
func TestKernelDatapath(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, Datapath: lab.DatapathKernel})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	// Connections that no rule concerns are not in the flow log.
	c.netctl("policy", "rule-add", "guard", "9", "--direction=in", "--protocol=icmp", "--action=allow")
	a, near := c.attachGroup("host1", "a", "net", "web"), c.attachGroup("host1", "near", "net", "web")
	far := c.attachGroup("host2", "far", "net", "web")

	t.Run("is what the bridges have", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, bridge := range []string{"contivVxlanBridge", "contivVlanBridge"} {
			if got := c.run("host1", "ovs-vsctl get bridge "+bridge+" datapath_type"); got != lab.DatapathKernel {
				t.Errorf("datapath of %s: %s", bridge, got)
			}
		}
		if out := c.run("host1", "ovs-appctl dpctl/show"); !strings.Contains(out, c.datapath()) || !strings.Contains(out, "vxlan_sys_4789") || strings.Contains(out, "netdev@") {
			t.Errorf("datapaths of host1:\n%s", out)
		}
		if out := c.run("host1", "netplugin preflight --vtep-ip 192.168.60.10 --ctrl-ip 192.168.2.10 || true"); !strings.Contains(out, "system (kernel)") {
			t.Errorf("netplugin preflight says\n%s", out)
		}
	})
	t.Run("pings", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, to := range []lab.Container{near, far} {
			c.reaches("a", to.IPv4)
			c.reaches("a", to.IPv6)
		}
	})
	t.Run("bridges whose names are too long for a device", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if out := c.run("host1", "ovs-vsctl get interface contivVxlanBridge error"); !strings.Contains(out, "could not add network device") {
			t.Errorf("the local port of contivVxlanBridge has the error %s: docs/tested.md says otherwise", out)
		}
		c.ready("host1", "netplugin") // it is no error of ours
		if got, err := c.NetctlOutput(t.Context(), "doctor", "--host", "host1"); err != nil {
			t.Errorf("netctl doctor: %v\n%s", err, got)
		}
	})
	t.Run("SCTP", func(t *testing.T) { cluster{c.Lab, t}.sctp(a, near, far) })
	t.Run("rules with ports for datagrams in fragments", func(t *testing.T) { cluster{c.Lab, t}.portsOfFragments(a, near, far) })
	t.Run("bytes of connections are counted", func(t *testing.T) { cluster{c.Lab, t}.counts(a, near) })
	t.Run("cleanup leaves nothing", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, name := range []string{"a", "near"} {
			if err := c.Detach(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		h, err := c.Host("host1")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		t.Log(c.run("host1", "netplugin cleanup"))
		c.becomes("host1", "! ip -o link | grep -E 'contiv|vport|vxlan_sys' && ! ovs-appctl dpctl/show | grep -E 'contiv|vport|vxlan_sys'")
	})
}

// sctp holds that associations come about, on a host and across hosts, and that rules hold
// for them. The other machines that run tests have no SCTP.
func (c cluster) sctp(from lab.Container, to ...lab.Container) {
	c.t.Helper()
	associates := func(to lab.Container, address string, want bool) {
		c.t.Helper()
		c.eventually(fmt.Sprintf("data by SCTP from %s to %s: %t", from.Name, address, want), func() error {
			out, err := c.Output(c.t.Context(), from.Name, "timeout", "20", "iperf3", "--json", "--sctp", "--bytes", "64K", "--client", address)
			var result iperfResult
			came := err == nil && json.Unmarshal([]byte(out), &result) == nil && result.End.SumReceived.Bytes >= 64<<10
			if came != want {
				return fmt.Errorf("%t: %v\n%s", came, err, out)
			}
			_, err = c.Output(c.t.Context(), from.Name, "nc", "-z", "-w", "5", address, "5201") // for what steers iperf3 there is no rule
			return err
		})
	}
	for _, t := range to {
		cmd, err := c.Start(context.WithoutCancel(c.t.Context()), t.Name, lab.Stdio{}, "iperf3", "--server")
		if err != nil {
			c.t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		associates(t, t.IPv4, true)
		associates(t, t.IPv6, true)
	}
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=132", "--action=deny")
	for _, t := range to {
		associates(t, t.IPv4, false)
	}
	c.netctl("policy", "rule-rm", "guard", "1")
	for _, t := range to {
		associates(t, t.IPv4, true)
	}
	c.logged(from.Host, "an association", flowapi.Filter{To: to[0].IPv4}, func(r flowapi.Record) bool {
		return r.Proto == "sctp" && len(r.Decisions) > 0 && r.Decisions[0].Verdict == "allowed"
	})
}

// portsOfFragments holds that datagrams in fragments are judged by their ports, which
// userspace cannot (decision 0014).
func (c cluster) portsOfFragments(from lab.Container, to ...lab.Container) {
	c.t.Helper()
	c.netctl("policy", "rule-add", "guard", "2", "--direction=in", "--protocol=udp", "--action=deny", "--priority=1")
	c.netctl("policy", "rule-add", "guard", "3", "--direction=in", "--protocol=udp", "--port="+largePort, "--action=allow", "--priority=2", "--wait")
	for _, t := range to {
		c.provideLarge(t)
		c.exchanges(from, net.JoinHostPort(t.IPv4, largePort), t.Name)
		c.exchanges(from, net.JoinHostPort(t.IPv6, largePort), t.Name)
	}
	c.netctl("policy", "rule-rm", "guard", "3")
	for _, t := range to {
		for _, address := range []string{t.IPv4, t.IPv6} {
			for _, size := range sizes {
				c.eventually(fmt.Sprintf("no answer to %d bytes", size[0]), func() error {
					conn, err := c.dial(from, "udp", net.JoinHostPort(address, largePort))
					if err != nil {
						return err
					}
					defer conn.Close()
					if name, err := exchange(conn, size[0], size[1]); err == nil {
						return fmt.Errorf("%s answers", name)
					}
					return nil
				})
			}
		}
	}
	c.netctl("policy", "rule-rm", "guard", "2", "--wait")
}

// counts holds that the flow log has what the kernel counts once it is told to.
func (c cluster) counts(from, to lab.Container) {
	c.t.Helper()
	c.run(from.Host, "echo 1 >/proc/sys/net/netfilter/nf_conntrack_acct")
	c.run(from.Name, "ping -c 5 -i 0.2 -s 1000 "+to.IPv4)
	c.logged(from.Host, "five pings and their answers", flowapi.Filter{From: from.IPv4, To: to.IPv4}, func(r flowapi.Record) bool {
		// With each 28 bytes of headers (RFC 791, RFC 792).
		return r.Proto == "icmp" && r.Packets == 10 && r.Bytes == 10*1028 && decided(r) != ""
	})
}
