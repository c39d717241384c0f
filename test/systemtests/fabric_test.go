package systemtests

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/aci/acitest"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// TestACIFabric: in an ACI fabric every group has a VLAN of its own, on ports and on the
// wire; the fabric learns of app profiles by its gateway, and decides what passes between
// groups.
func TestACIFabric(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	gateway := c.gateway("host1")
	c.netctl("global", "set", "--fabric-mode", "aci", "--vlan-range", "100-200")
	c.netctl("aci-gw", "set", "--path-bindings", "topology/pod-1/paths-101/pathep-[eth1/14]", "--phys-dom", "dom1")
	c.netctl("net", "create", "net", "--encap", "vlan", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254")
	c.netctl("policy", "create", "to-db")
	c.netctl("policy", "rule-add", "to-db", "1", "--direction", "in", "--protocol", "tcp", "--port", "5432", "--action", "allow")
	c.netctl("group", "create", "net", "web")
	c.netctl("group", "create", "net", "db", "--policy", "to-db", "--wait")
	tags := map[string]int{"web": c.groupTag("web"), "db": c.groupTag("db")}
	if tags["web"] == tags["db"] || tags["web"] == 0 || tags["db"] == 0 {
		t.Fatalf("VLANs of groups: %v, expected two", tags)
	}
	c.attachGroup("host1", "web", "net", "web")
	near := c.attachGroup("host1", "web-near", "net", "web")
	far, db := c.attachGroup("host2", "web-far", "net", "web"), c.attachGroup("host2", "db", "net", "db")
	holds := func(c cluster) {
		c.t.Helper()
		c.reaches("web", near.IPv4)
		tagged := c.capture("host2", "eth2", fmt.Sprintf("vlan %d and icmp", tags["web"]))
		c.reaches("web", far.IPv4)
		if got := tagged(); !strings.Contains(got, fmt.Sprintf("vlan %d", tags["web"])) {
			c.t.Errorf("no ping with the group's tag %d was seen on the trunk: %q", tags["web"], got)
		}
		// Between groups the fabric forwards; there is none behind this trunk.
		c.reachesNot("web", db.IPv4)
		c.reachesNot("db", near.IPv4)
	}
	run := func(name string, f func(c cluster)) { t.Run(name, func(t *testing.T) { f(cluster{c.Lab, t}) }) }
	run("groups are VLANs", holds)
	run("app profiles", func(c cluster) {
		c.netctl("app-profile", "create", "--group", "web,db", "shop")
		gateway.Await("default:shop", func(text string) bool {
			return strings.Contains(text, fmt.Sprintf(`"vlan-tag":"%d"`, tags["web"])) && strings.Contains(text, `"servport":"5432"`)
		})
		c.netctl("policy", "rule-add", "to-db", "2", "--direction", "in", "--protocol", "tcp", "--port", "5433", "--action", "allow")
		gateway.Await("default:shop", func(text string) bool { return strings.Contains(text, `"servport":"5433"`) })
	})
	run("restarts", func(c cluster) {
		c.restart("host1", "netplugin", syscall.SIGKILL)
		c.restart("host2", "netplugin", syscall.SIGTERM)
		c.restart("host1", "netmaster", syscall.SIGKILL)
		holds(c)
	})
	run("what a fabric has not", func(c cluster) {
		for _, args := range [][]string{
			{"net", "create", "over", "--encap", "vxlan", "--subnet=50.1.1.0/24"},
			{"bgp", "create", "host1", "--router-ip", "50.1.1.2/24", "--as", "65002", "--neighbor", "50.1.1.200", "--neighbor-as", "500"},
		} {
			if args[0] == "net" { // a group in it is what is refused
				c.netctl(args...)
				args = []string{"group", "create", "over", "nobody"}
			}
			if out, err := c.NetctlOutput(t.Context(), args...); err == nil {
				c.t.Errorf("netctl %s: %s, expected to be refused", strings.Join(args, " "), out)
			}
		}
	})
	run("the gateway is told of the end", func(c cluster) {
		c.netctl("app-profile", "rm", "shop")
		gateway.Await("default:shop", func(text string) bool { return text == "" })
	})
}

// gateway serves the gateway to an ACI fabric where netmaster on a host looks for it.
func (c cluster) gateway(host string) *acitest.Gateway {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	g := acitest.Start(c.t)
	var l net.Listener
	err = nsenter.Network(fmt.Sprintf("/proc/%d/ns/net", h.PID()), func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:5000")
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	c.t.Cleanup(func() { _ = server.Close(); <-done })
	return g
}

// groupTag is the VLAN of a group of the default tenant, as netctl shows it.
func (c cluster) groupTag(group string) int {
	c.t.Helper()
	var answer struct {
		Oper struct {
			PktTag int `json:"pktTag"`
		}
	}
	if out := c.netctl("group", "inspect", group); json.Unmarshal([]byte(out), &answer) != nil {
		c.t.Fatalf("group inspect %s: %s", group, out)
	}
	return answer.Oper.PktTag
}
