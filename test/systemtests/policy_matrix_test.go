package systemtests

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// probe is a try to reach a container, and what is to become of it.
type probe struct {
	from, to string
	proto    string // tcp | udp | icmp, each over IPv4; tcp6
	port     int
	want     bool
}

// cell is a set of rules of the policy of group web, and what follows from it.
type cell struct {
	name   string
	rules  []string // options of rule-add
	probes []probe
}

// policyCells are the rules there are, one feature after the other. The containers are
// web (of group web), app and other (of the groups of these names, on the other host).
func policyCells(containers map[string]lab.Container) []cell {
	app := containers["app"].IPv4
	return []cell{
		{"no rules", nil, []probe{{"app", "web", "tcp", 80, true}, {"app", "web", "tcp6", 80, true}, {"app", "web", "udp", 53, true}, {"app", "web", "icmp", 0, true}}},
		{"protocol TCP", []string{"--protocol=tcp --action=deny"}, []probe{
			{"app", "web", "tcp", 80, false}, {"app", "web", "tcp6", 80, false}, {"app", "web", "udp", 53, true}, {"app", "web", "icmp", 0, true},
		}},
		{"protocol UDP and port", []string{"--protocol=udp --port=53 --action=deny"}, []probe{
			{"app", "web", "udp", 53, false}, {"app", "web", "udp", 54, true}, {"app", "web", "tcp", 80, true},
		}},
		{"protocol ICMP", []string{"--protocol=icmp --action=deny"}, []probe{{"app", "web", "icmp", 0, false}, {"app", "web", "tcp", 80, true}}},
		{"port", []string{"--protocol=tcp --port=80 --action=deny"}, []probe{{"app", "web", "tcp", 80, false}, {"app", "web", "tcp", 81, true}}},
		{"an allowance goes before a denial", []string{"--protocol=tcp --action=deny", "--protocol=tcp --port=80 --action=allow --priority=10"}, []probe{
			{"app", "web", "tcp", 80, true}, {"app", "web", "tcp", 81, false},
		}},
		{"a denial goes before an allowance", []string{"--protocol=tcp --action=allow", "--protocol=tcp --port=80 --action=deny --priority=10"}, []probe{
			{"app", "web", "tcp", 80, false}, {"app", "web", "tcp", 81, true},
		}},
		{"group", []string{"--protocol=tcp --from-group=app --action=deny"}, []probe{{"app", "web", "tcp", 80, false}, {"other", "web", "tcp", 80, true}}},
		{"address", []string{"--protocol=tcp --from-ip-address=" + app + "/32 --action=deny"}, []probe{
			{"app", "web", "tcp", 80, false}, {"app", "web", "tcp6", 80, true}, {"other", "web", "tcp", 80, true},
		}},
		{"network", []string{"--protocol=tcp --from-network=net --action=deny"}, []probe{{"app", "web", "tcp", 80, false}, {"other", "web", "tcp", 80, false}}},
		{"direction", []string{"--direction=out --protocol=tcp --port=80 --to-group=app --action=deny"}, []probe{
			{"web", "app", "tcp", 80, false}, {"web", "app", "tcp", 81, true}, {"web", "other", "tcp", 80, true}, {"app", "web", "tcp", 80, true},
		}},
	}
}

// TestPolicyMatrix: every feature of rules, in every mode, across hosts, with packets.
func TestPolicyMatrix(t *testing.T) {
	for _, mode := range []struct{ name, lab, encap, forward string }{
		{"vxlan routing", "vxlan", "vxlan", "routing"},
		{"vxlan bridge", "vlan", "vxlan", "bridge"},
		{"vlan routing", "vlan", "vlan", "routing"},
		{"vlan bridge", "vlan", "vlan", "bridge"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, NetMode: mode.lab, FwdMode: mode.forward})
			c.netctl("net", "create", "net", "--encap", mode.encap, "--pkt-tag", "101", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
			c.netctl("policy", "create", "guard")
			c.netctl("group", "create", "net", "web", "--policy", "guard")
			c.netctl("group", "create", "net", "app")
			c.netctl("group", "create", "net", "other", "--wait")
			m := matrix{containers: map[string]lab.Container{}, heard: map[string]*buffer{}}
			for name, host := range map[string]string{"web": "host1", "app": "host2", "other": "host2"} {
				m.containers[name] = c.attachGroup(host, name, "net", name)
				c.listen(name, 80, 81)
			}
			for _, port := range []int{53, 54} {
				m.hear(c, "web", port)
			}
			alive := c.stream("other", m.containers["web"])
			for _, cell := range policyCells(m.containers) {
				t.Run(cell.name, func(t *testing.T) { m.play(cluster{c.Lab, t}, cell) })
			}
			if t.Failed() {
				return
			}
			alive()
		})
	}
}

// matrix is where the cells are played.
type matrix struct {
	containers map[string]lab.Container
	heard      map[string]*buffer // datagrams that came, by port
	sent       int
}

// hear has a container take datagrams of a port down.
func (m *matrix) hear(c cluster, name string, port int) {
	c.t.Helper()
	heard := &buffer{}
	m.heard[fmt.Sprint(name, port)] = heard
	c.background(name, lab.Stdio{Out: heard}, syscall.SIGKILL, "nc", "-4", "-u", "-lk", fmt.Sprint(port))
	c.run(name, fmt.Sprintf("for i in $(seq 500); do [ $(ss -Hlun 'sport = :%d' | wc -l) -ge 1 ] && exit 0; sleep 0.02; done; exit 1", port))
}

// play sets the rules of a cell up, tries its probes at once, and takes the rules away.
func (m *matrix) play(c cluster, cell cell) {
	for i, options := range cell.rules {
		args := append([]string{"policy", "rule-add", "guard", fmt.Sprint(i + 1)}, strings.Fields(options)...)
		c.netctl(append(args, "--wait")...)
	}
	var wg sync.WaitGroup
	problems := make([]error, len(cell.probes))
	for i, p := range cell.probes {
		m.sent++
		token := fmt.Sprint("token", m.sent, ".")
		wg.Go(func() { problems[i] = m.try(c, p, token) })
	}
	wg.Wait()
	for _, err := range problems {
		if err != nil {
			c.t.Error(err)
		}
	}
	for i := range cell.rules {
		c.netctl("policy", "rule-rm", "guard", fmt.Sprint(i+1), "--wait")
	}
}

// try repeats a probe that is to succeed until it does; one that is not is made once.
func (m *matrix) try(c cluster, p probe, token string) error {
	tries := 20
	if !p.want {
		tries = 1
	}
	ok := false
	for range tries {
		if ok = m.reaches(c, p, token); ok {
			break
		}
	}
	if ok != p.want {
		return fmt.Errorf("%s to %s, %s port %d: reached %t, want %t", p.from, p.to, p.proto, p.port, ok, p.want)
	}
	return nil
}

func (m *matrix) reaches(c cluster, p probe, token string) bool {
	to, port := m.containers[p.to], fmt.Sprint(p.port)
	var err error
	switch p.proto {
	case "tcp":
		_, err = c.Output(c.t.Context(), p.from, "nc", "-z", "-w", "1", to.IPv4, port)
	case "tcp6":
		_, err = c.Output(c.t.Context(), p.from, "nc", "-z", "-w", "1", to.IPv6, port)
	case "icmp":
		_, err = c.Output(c.t.Context(), p.from, "ping", "-n", "-c", "1", "-W", "1", to.IPv4)
	case "udp":
		// The sender stays for a second: that is how long the datagram has to come.
		_, _ = c.Output(c.t.Context(), p.from, "sh", "-c", fmt.Sprintf("echo %s | nc -u -w 1 %s %s", token, to.IPv4, port))
		return strings.Contains(m.heard[p.to+port].String(), token)
	}
	return err == nil
}
