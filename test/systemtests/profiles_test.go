package systemtests

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// marked is a container whose packets carry a DSCP.
type marked struct {
	lab.Container
	dscp int
	to   lab.Container
}

// TestNetProfiles: profiles of the same name in several tenants, and several groups of
// one tenant, keep to themselves, whatever is restarted and whoever leads.
func TestNetProfiles(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	dscp := map[string]int{"blue/web": 46, "blue/db": 10, "red/web": 20}
	var all []marked
	for _, tenant := range []string{"blue", "red"} {
		c.netctl("tenant", "create", tenant)
		c.netctl("net", "create", "net", "-t", tenant, "--subnet=10.1.1.0/24", "--gateway=10.1.1.254")
	}
	for i, group := range []string{"blue/web", "blue/db", "red/web"} {
		tenant, name, _ := strings.Cut(group, "/")
		profile := "gold"
		if name == "db" {
			profile = "silver"
		}
		c.netctl("netprofile", "create", profile, "-t", tenant, "--dscp", fmt.Sprint(dscp[group]), "--bandwidth", fmt.Sprintf("%dmbps", 10*(i+1)))
		c.netctl("group", "create", "net", name, "-t", tenant, "--networkprofile", profile, "--wait")
	}
	for group, value := range dscp {
		tenant, name, _ := strings.Cut(group, "/")
		attach := func(host, suffix string) lab.Container {
			container, err := c.Attach(t.Context(), lab.Attachment{Host: host, Name: tenant + "-" + name + suffix, Tenant: tenant, Network: "net", Group: name})
			if err != nil {
				t.Fatal(err)
			}
			return container
		}
		all = append(all, marked{attach("host1", "-from"), value, attach("host2", "-to")})
	}
	holds := func(c cluster) {
		c.t.Helper()
		for _, m := range all {
			filter := fmt.Sprintf("icmp[icmptype] = icmp-echo and ip[1] & 0xfc = %#x", m.dscp<<2)
			c.seen(fmt.Sprintf("%s, DSCP %d", m.Name, m.dscp), m.Name, m.to, m.to.IPv4, filter)
		}
		want := "[10485 20971 31457]"
		c.eventually("rates of the groups in the switch", func() error {
			if got := fmt.Sprint(c.rates("host1")); got != want {
				return fmt.Errorf("they are %s kbit/s, not %s", got, want)
			}
			return nil
		})
	}
	run := func(name string, f func(c cluster)) { t.Run(name, func(t *testing.T) { f(cluster{c.Lab, t}) }) }
	run("each group has its own", holds)
	run("the agents restart", func(c cluster) {
		c.restart("host1", "netplugin", syscall.SIGKILL)
		c.restart("host2", "netplugin", syscall.SIGTERM)
		holds(c)
	})
	run("the leader is killed, and a profile changes under the next", func(c cluster) {
		leader := c.leader("host1")
		c.restart(leader, "netmaster", syscall.SIGKILL)
		for i := range all {
			if strings.HasPrefix(all[i].Name, "red-") {
				all[i].dscp = 30
			}
		}
		c.eventually("change the profile", func() error {
			out, err := c.NetctlOutput(c.t.Context(), "netprofile", "create", "gold", "-t", "red", "--dscp", "30", "--bandwidth", "30mbps", "--wait")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		holds(c)
	})
	run("one profile is taken from its group", func(c cluster) {
		c.netctl("group", "create", "net", "db", "-t", "blue", "--networkprofile", "gold", "--wait")
		for i := range all {
			if strings.HasPrefix(all[i].Name, "blue-db") {
				all[i].dscp = 46
			}
		}
		for _, m := range all {
			filter := fmt.Sprintf("icmp[icmptype] = icmp-echo and ip[1] & 0xfc = %#x", m.dscp<<2)
			c.seen(m.Name, m.Name, m.to, m.to.IPv4, filter)
		}
		c.netctl("netprofile", "rm", "silver", "-t", "blue")
	})
}

// rates are those that the meters for containers of a host let pass, each once, in kbit/s.
func (c cluster) rates(host string) (rates []int) {
	c.t.Helper()
	out := c.run(host, "ovs-ofctl -O OpenFlow13 dump-meters "+vxlanBridge)
	for _, m := range regexp.MustCompile(`kbps burst bands=\s+type=drop rate=(\d+)`).FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			c.t.Fatal(err)
		}
		rates = append(rates, n)
	}
	slices.Sort(rates)
	return slices.Compact(rates)
}
