package systemtests

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestSwitchIsKilled: ovs-vswitchd of a host ends of a sudden, and its supervisor starts it
// again. The agent programs it again, all that worked works, and the agent says that it
// happened.
func TestSwitchIsKilled(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	a := c.attach("host1", "a", "net")
	near := c.attach("host1", "near", "net")
	far := c.attach("host2", "far", "net")
	c.provide(far)
	c.event("start", far, map[string]string{"app": "web"})
	c.netctl("service", "create", "web", "--network", "net", "--selector", "app=web", "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	svc := c.serviceWith("web", 1)
	for _, to := range []lab.Container{near, far} {
		c.reaches(a.Name, to.IPv4)
		c.reaches(a.Name, to.IPv6)
	}
	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	before := c.flows("host1", "contivVxlanBridge")
	if health := c.text(h, "/healthz"); strings.Contains(health, "notes") {
		t.Errorf("the agent tells of what has not happened: %s", health)
	}
	for round := 1; round <= 3; round++ {
		var out buffer
		cmd, err := c.Start(t.Context(), a.Name, lab.Stdio{Out: &out}, "ping", "-n", "-D", "-i", "0.02", far.IPv4)
		if err != nil {
			t.Fatal(err)
		}
		pid := c.vswitchd("host1")
		c.eventually("ping runs", func() error { return answeredAfter(out.String(), 0) })
		killed := c.now("host1")
		c.run("host1", "kill -9 "+pid)
		c.eventually("ovs-vswitchd is started again", func() error {
			if now, err := c.Output(t.Context(), "host1", "cat", "/run/openvswitch/ovs-vswitchd.pid"); err != nil || now == pid {
				return fmt.Errorf("process %q: %w", now, err)
			}
			_, err := c.Output(t.Context(), "host1", "ovs-appctl", "--timeout=5", "version")
			return err
		})
		back := c.now("host1")
		c.eventually("pings are answered again", func() error { return answeredAfter(out.String(), killed+0.001) })
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		first := firstAnswer(out.String(), killed+0.001)
		t.Logf("round %d: ovs-vswitchd answers %.2f s after it was killed, containers across hosts %.2f s after that", round, back-killed, max(0, first-back))
		c.eventually("all flows are back", func() error {
			if after := c.flows("host1", "contivVxlanBridge"); !slices.Equal(learnedApart(after), learnedApart(before)) {
				return fmt.Errorf("%d flows, %d before", len(after), len(before))
			}
			return nil
		})
		c.limited("host1")
		for _, to := range []lab.Container{near, far} {
			c.reaches(a.Name, to.IPv4)
			c.reaches(a.Name, to.IPv6)
		}
		svc.each(func(network, address string) {
			c.eventually("the service answers at "+network+" "+address, func() error {
				_, err := c.who(a, network, address)
				return err
			})
		})
		want := fmt.Sprintf(`contiv_ovs_restarts_total{bridge="contivVxlanBridge"} %d`, round)
		c.eventually("the agent has counted it", func() error {
			if metrics := c.text(h, "/metrics"); !strings.Contains(metrics, want) {
				return fmt.Errorf("no %s", want)
			}
			return nil
		})
		if health, want := c.text(h, "/healthz"), fmt.Sprintf("without flows %d times", round); !strings.Contains(health, want) || !strings.Contains(health, `"ready":true`) {
			t.Errorf("healthz says %s, want %q", health, want)
		}
	}
}

// now is the time of a host in seconds, as ping -D prints it.
func (c cluster) now(host string) float64 {
	c.t.Helper()
	s, err := strconv.ParseFloat(c.run(host, "date +%s.%N"), 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// text reads what an agent tells.
func (c cluster) text(h *lab.Host, path string) string {
	c.t.Helper()
	resp, err := h.HTTP().Get("http://127.0.0.1:9090" + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

var pingTime = regexp.MustCompile(`(?m)^\[(\d+\.\d+)\] .*bytes from`)

// firstAnswer is when the first answer after a time came, 0 for never.
func firstAnswer(out string, after float64) float64 {
	for _, m := range pingTime.FindAllStringSubmatch(out, -1) {
		if at, err := strconv.ParseFloat(m[1], 64); err == nil && at > after {
			return at
		}
	}
	return 0
}

func answeredAfter(out string, after float64) error {
	if firstAnswer(out, after) == 0 {
		return fmt.Errorf("no answer after %.3f:\n%s", after, tail(out))
	}
	return nil
}

// learnedApart leaves out the flows that the switch has learned: those are about
// connections, which it has forgotten.
func learnedApart(flows []string) []string {
	return slices.DeleteFunc(slices.Clone(flows), func(f string) bool {
		return strings.Contains(f, "idle_timeout=") || strings.Contains(f, "hard_timeout=")
	})
}
