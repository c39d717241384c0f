package systemtests

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// dockerOutage is a cluster with one container per host.
func dockerOutage(t *testing.T, version string) (c dockers, control, far *lab.Host) {
	t.Helper()
	c = dockers{up(t, lab.Config{Hosts: 2, Store: lab.StoreEtcd, Docker: version, Relay: true})}
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	for _, host := range []string{"host1", "host2"} {
		c.networks(host, "front")
	}
	return c, c.Hosts()[0], c.Hosts()[1]
}

// TestDockerWithoutMaster: while netmaster, the store, or both are down, and even when the
// agent has never seen them, docker run says so soon, and docker rm works and is finished
// later.
func TestDockerWithoutMaster(t *testing.T) {
	t.Parallel() // it mostly waits
	version := engines()[len(engines())-1]
	c, control, far := dockerOutage(t, version)
	for _, name := range []string{"one", "two", "three", "stays"} {
		c.container("host2", name, "front")
	}
	c.container("host1", "peer", "front")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string) {
		t.Helper()
		began := time.Now()
		_, err := c.try("host2", "run", "--name", "late", "--network", "front", lab.Image, "true")
		took := time.Since(began)
		if err == nil || !strings.Contains(err.Error(), "try again") || took > time.Minute {
			t.Errorf("docker run without %s: %v after %s, want to be told soon to try again", what, err, took)
		}
		t.Logf("docker run without %s: %.1f s: %v", what, took.Seconds(), err)
		c.docker("host2", "rm", "-f", "late")
	}
	removed := func(name string) {
		t.Helper()
		began := time.Now()
		c.docker("host2", "rm", "-f", name)
		t.Logf("docker rm: %.1f s", time.Since(began).Seconds())
	}

	must(control.StopDaemon(t.Context(), "netmaster", syscall.SIGKILL))
	refused("netmaster")
	removed("one")
	c.pings("host1", "peer", c.address("host2", "stays", "front"))
	must(control.StartDaemon(t.Context(), "netmaster"))
	c.agree()

	must(control.StopDaemon(t.Context(), "etcd", syscall.SIGKILL))
	if long() {
		refused("store")
	}
	removed("two")
	must(far.StopDaemon(t.Context(), "netplugin", syscall.SIGKILL))
	ready := make(chan error, 1)
	go func() { ready <- far.StartDaemon(t.Context(), "netplugin") }() // not before the store
	c.eventually("the agent serves the Engine", func() bool {
		_, err := far.Output(t.Context(), "curl", "-s", "--unix-socket", "/run/contiv/docker-plugin.sock", "http://agent/")
		return err == nil
	})
	removed("three")
	refused("store, by an agent that has not seen it")
	c.pings("host1", "peer", c.address("host2", "stays", "front"))
	must(control.StartDaemon(t.Context(), "etcd"))
	must(<-ready)
	c.agree()
	c.container("host2", "late", "front")
	c.agree()
}

// TestDockerLiveRestore: containers that an Engine leaves alone while it restarts keep
// what they have, whether the agent is there or not.
func TestDockerLiveRestore(t *testing.T) {
	version := engines()[len(engines())-1]
	c, _, far := dockerOutage(t, version)
	c.run("host2", `mkdir -p /etc/docker; echo '{"live-restore": true}' >/etc/docker/daemon.json`)
	c.restart("host2", "docker", syscall.SIGTERM)
	to := c.container("host1", "peer", "front")
	c.docker("host2", "run", "-d", "--name", "lives", "--network", "front", lab.Image, "sh", "-c", "ping -i 0.2 "+to+" >/log & "+idle)
	was := c.docker("host2", "inspect", "-f", "{{.State.Pid}} {{json .NetworkSettings.Networks}}", "lives")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}
	if !long() {
		signals = signals[:1]
	}
	for _, signal := range signals {
		must(far.StopDaemon(t.Context(), "docker", signal))
		must(far.StartDaemon(t.Context(), "docker"))
		must(far.StopDaemon(t.Context(), "docker", signal))
		must(far.StopDaemon(t.Context(), "netplugin", signal))
		must(far.StartDaemon(t.Context(), "docker"))
		must(far.StartDaemon(t.Context(), "netplugin"))
	}
	c.agree()
	// Longer than the agent waits before it takes an endpoint for one that was forgotten.
	time.Sleep(17 * time.Second)
	c.agree()
	if got := c.docker("host2", "inspect", "-f", "{{.State.Pid}} {{json .NetworkSettings.Networks}}", "lives"); got != was {
		t.Errorf("the container has %s, had %s", got, was)
	}
	sent := regexp.MustCompile(`seq=(\d+)`).FindAllStringSubmatch(c.docker("host2", "exec", "lives", "cat", "/log"), -1)
	last, lost := 0, 0
	for _, m := range sent {
		seq, err := strconv.Atoi(m[1])
		must(err)
		if gap := seq - last - 1; gap > 0 {
			lost += gap
			if gap > 4 { // one or two are the userspace datapath's
				t.Errorf("packets %d to %d are lost, a second and more", last+1, seq-1)
			}
		}
		last = seq
	}
	t.Logf("%d packets, %d lost", last, lost)
	if last < 50 {
		t.Errorf("%d packets were sent, want a stream of them", last)
	}
	c.docker("host2", "rm", "-f", "lives")
	c.agree()
}
