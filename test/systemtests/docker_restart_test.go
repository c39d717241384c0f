package systemtests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// pid is the process id of a daemon as its host sees it.
func (c dockers) pid(host, daemon string) int {
	c.t.Helper()
	all, err := c.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range all {
		for _, d := range h.Daemons {
			if h.Name == host && d.Name == daemon && d.Running {
				return d.PID
			}
		}
	}
	c.t.Fatalf("%s does not run on %s", daemon, host)
	return 0
}

// TestDockerRestarts restarts the Engine while it has containers, and the agent is there,
// is away, or does not answer. The Engine must come up each time, and soon: how soon is
// measured, not held, for machines are slow at times.
func TestDockerRestarts(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, version := range engines() {
		t.Run("Engine "+version, func(t *testing.T) {
			t.Parallel()
			c := dockers{up(t, lab.Config{Hosts: 1, Docker: version, Relay: true})}
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
			c.netctl("net", "create", "back", "--subnet=30.1.1.0/24", "--gateway=30.1.1.254")
			c.networks("host1", "front", "back")
			host, err := c.Host("host1")
			if err != nil {
				t.Fatal(err)
			}
			containers := 10
			if long() {
				containers = 50
			}
			for i := range containers {
				c.container("host1", fmt.Sprint("keep", i), []string{"front", "back"}[i%2], "--restart", "always")
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			restart := func(agent string) {
				t.Helper()
				began := time.Now()
				must(host.StartDaemon(t.Context(), "docker"))
				t.Logf("Engine %s with %d containers, agent %s: ready after %.1f s", version, containers, agent, time.Since(began).Seconds())
			}
			running := func() {
				t.Helper()
				c.eventually("all containers run", func() bool {
					return len(strings.Fields(c.docker("host1", "ps", "-q"))) == containers
				})
				c.pings("host1", "keep0", c.address("host1", "keep2", "front"))
			}

			must(host.StopDaemon(t.Context(), "docker", syscall.SIGTERM))
			restart("up")
			running()

			// Killed, it leaves everything as it was.
			must(host.StopDaemon(t.Context(), "docker", syscall.SIGKILL))
			restart("up, after the Engine was killed")
			running()

			must(host.StopDaemon(t.Context(), "docker", syscall.SIGTERM))
			must(host.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM))
			restart("down")
			must(host.StartDaemon(t.Context(), "netplugin"))
			started := []string{"start"}
			for i := range containers {
				started = append(started, fmt.Sprint("keep", i))
			}
			start := func() {
				t.Helper()
				c.eventually("containers can be started", func() bool {
					_, err := c.try("host1", started...)
					return err == nil
				})
			}
			start()
			running()

			must(host.StopDaemon(t.Context(), "docker", syscall.SIGTERM))
			must(host.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM))
			back := make(chan error, 1)
			go func() {
				time.Sleep(3 * time.Second)
				back <- host.StartDaemon(t.Context(), "netplugin")
			}()
			restart("back after 3 s")
			must(<-back)
			start() // those that could not wait
			running()

			must(host.StopDaemon(t.Context(), "docker", syscall.SIGTERM))
			agent := fmt.Sprint(c.pid("host1", "netplugin"))
			c.run("host1", "kill -STOP "+agent)
			restart("hangs")
			c.run("host1", "kill -CONT "+agent)
			start()
			running()

			c.docker("host1", append([]string{"rm", "-f"}, started[1:]...)...)
			c.allocated("front", 0)
			c.allocated("back", 0)
		})
	}
}
