package systemtests

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestManagedPlugin: the Engines run the agent. docker networks have the plugin's name,
// containers talk across hosts and know one another's names, and go on doing so while the
// plugin is disabled.
func TestManagedPlugin(t *testing.T) {
	versions := engines()
	if !long() { // TestSwarmEngine takes the other one
		versions = versions[len(versions)-1:]
	}
	for _, version := range versions {
		t.Run("Engine "+version, func(t *testing.T) {
			c := dockers{up(t, lab.Config{Hosts: 2, Docker: version, Managed: true})}
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100")
			c.netctl("group", "create", "front", "web")
			for _, host := range []string{"host1", "host2"} {
				c.networksOf(lab.Plugin, host, "front", "web")
			}
			c.docker("host1", "network", "create", "-d", lab.Plugin, "--ipam-driver", lab.Plugin, "--ipam-opt", "network=front", "mine")
			b := c.container("host2", "base", "front")
			c.container("host1", "app", "web", "--dns", "20.1.1.254")
			c.container("host1", "hand", "mine")
			for _, from := range []string{"app", "hand"} {
				c.pings("host1", from, b)
			}
			c.eventually("a container of another host has a name", func() bool {
				_, err := c.try("host1", "exec", "app", "ping", "-c", "1", "-w", "5", "base")
				return err == nil
			})

			if out, err := c.try("host1", "plugin", "disable", lab.Plugin); err == nil {
				t.Errorf("a plugin that has networks is disabled: %s", out)
			}
			c.docker("host1", "plugin", "disable", "-f", lab.Plugin)
			c.pings("host1", "app", b)
			c.docker("host1", "plugin", "enable", lab.Plugin)
			c.pings("host1", "app", "base") // by name, of an agent that has started again
			c.docker("host1", "rm", "-f", "app", "hand")
			c.docker("host2", "rm", "-f", "base")
			c.allocated("front", 0)

			c.docker("host1", "network", "rm", "mine")
			c.netctl("group", "rm", "web")
			c.netctl("net", "rm", "front")
			c.networksOf(lab.Plugin, "host1")
			c.docker("host1", "plugin", "disable", lab.Plugin)
			c.docker("host1", "plugin", "set", lab.Plugin, "CONTIV_ROLE=nobody")
			if out, err := c.try("host1", "plugin", "enable", lab.Plugin); err == nil {
				t.Errorf("a plugin of a role that does not exist is enabled: %s", out)
			}
			log := c.run("host1", "cat /var/log/contiv/plugin_bootup.log")
			if want := `CONTIV_ROLE is "nobody", expected netmaster or netplugin`; !strings.Contains(log, want) {
				t.Errorf("plugin_bootup.log is %q, want it to say %q", log, want)
			}
			c.docker("host1", "plugin", "rm", lab.Plugin)
		})
	}
}

// TestManagedPluginAlone: one plugin has everything in it, the switch and netmaster too.
func TestManagedPluginAlone(t *testing.T) {
	c := dockers{up(t, lab.Config{Hosts: 1, Docker: lab.DockerPacked, Store: lab.StoreEtcd, Managed: true})}
	host, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	c.docker("host1", "plugin", "disable", lab.Plugin)
	c.run("host1", "netplugin cleanup")
	for _, daemon := range []string{"netmaster", "ovs"} {
		if err := host.StopDaemon(t.Context(), daemon, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	// As on a host without Open vSwitch. Its interfaces outlive it.
	c.run("host1", "rm -rf /etc/openvswitch/* /run/openvswitch/*; cd /sys/class/net; for i in contiv* br-ext ovs-netdev; do [ ! -e $i ] || ip link delete $i; done")
	settings := slices.Concat([]string{"plugin", "set", lab.Plugin}, host.PluginSettings(), []string{
		"CONTIV_START_OVS=1", "CONTIV_ROLE=netmaster", "CONTIV_NETMASTER_NET_MODE=vxlan", "CONTIV_NETMASTER_FORWARD_MODE=routing",
		"CONTIV_NETMASTER_INTERNAL_ADDRESS=" + host.ControlIP() + ":9999", "CONTIV_NETPLUGIN_OVS_DATAPATH=netdev",
	})
	c.docker("host1", settings...)
	c.docker("host1", "plugin", "enable", lab.Plugin)
	ctx, cancel := context.WithTimeout(t.Context(), dockerPatience)
	defer cancel()
	if err := host.AwaitReady(ctx, "netplugin"); err != nil {
		t.Fatal(err)
	}
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.networksOf(lab.Plugin, "host1", "front")
	c.container("host1", "app", "front")
	c.pings("host1", "app", c.container("host1", "base", "front"))
	// What ends is started again.
	c.run("host1", "kill $(pidof netmaster)")
	c.eventually("netmaster is back", func() bool {
		_, err := c.NetctlOutput(t.Context(), "net", "create", "back", "--subnet=30.1.1.0/24")
		return err == nil
	})
	c.networksOf(lab.Plugin, "host1", "front", "back")
}
