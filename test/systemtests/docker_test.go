package systemtests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// dockerPatience is for what comes for certain; it only bounds a test that has failed.
var dockerPatience = eventually.Scaled(4 * time.Minute)

// engines lists the versions of the Docker Engine that are here: the distribution's, and
// the newer one where it has been built.
func engines() []string {
	versions := []string{lab.DockerPacked}
	if lab.HasDocker(lab.DockerBuilt) {
		versions = append(versions, lab.DockerBuilt)
	}
	return versions
}

// idle is what containers do that only have to be there.
const idle = "trap exit TERM; while :; do sleep 1; done"

// dockers is a cluster whose hosts have a Docker Engine.
type dockers struct{ cluster }

func (c dockers) sub(t *testing.T) dockers { return dockers{cluster{c.Lab, t}} }

// try runs the docker client on a host.
func (c dockers) try(host string, args ...string) (string, error) {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	return h.Docker(context.WithoutCancel(c.t.Context()), args...)
}

// docker runs the docker client on a host; it must succeed.
func (c dockers) docker(host string, args ...string) string {
	c.t.Helper()
	out, err := c.try(host, args...)
	if err != nil {
		c.t.Fatalf("docker %s on %s: %v", strings.Join(args, " "), host, err)
	}
	return out
}

// container starts an idle container and returns its address in a network.
func (c dockers) container(host, name, network string, args ...string) string {
	c.t.Helper()
	c.docker(host, slices.Concat([]string{"run", "-d", "--name", name, "--network", network}, args, []string{lab.Image, "sh", "-c", idle})...)
	return c.address(host, name, network)
}

// address is the IPv4 address of a container in a network.
func (c dockers) address(host, name, network string) string {
	c.t.Helper()
	return c.docker(host, "inspect", "-f", fmt.Sprintf("{{(index .NetworkSettings.Networks %q).IPAddress}}", network), name)
}

// reach is a script that succeeds when an address answers, within half a minute.
func reach(address string) string {
	return "timeout 30 sh -c 'until ping -c 1 -W 1 " + address + "; do :; done'"
}

func (c dockers) pings(host, from, to string) {
	c.t.Helper()
	if out, err := c.try(host, "exec", from, "sh", "-c", reach(to)); err != nil {
		c.t.Errorf("%s on %s does not reach %s: %v\n%s", from, host, to, err, tail(out))
	}
}

func (c dockers) pingsNot(host, from, to string) {
	c.t.Helper()
	if out, err := c.try(host, "exec", from, "ping", "-c", "2", "-W", "1", to); err == nil {
		c.t.Errorf("%s on %s reaches %s and should not:\n%s", from, host, to, out)
	}
}

// eventually waits for something that must happen.
func (c dockers) eventually(what string, ok func() bool) {
	c.t.Helper()
	eventually.True(c.t, what, ok)
}

// networks waits until a host's Engine has exactly these networks of Contiv.
func (c dockers) networks(host string, want ...string) {
	c.t.Helper()
	c.networksOf("netplugin", host, want...)
}

// networksOf does so for the networks of a driver.
func (c dockers) networksOf(driver, host string, want ...string) {
	c.t.Helper()
	slices.Sort(want)
	eventually.Succeeds(c.t, fmt.Sprintf("docker networks on %s: %v", host, want), func() error {
		got := strings.Fields(c.docker(host, "network", "ls", "--filter", "driver="+driver, "--format", "{{.Name}}"))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// allocated waits until as many addresses of a network have been handed out.
func (c dockers) allocated(network string, want int) {
	c.t.Helper()
	text := fmt.Sprintf("\"allocatedAddressesCount\": %d", want)
	c.eventually(fmt.Sprintf("%d addresses of %s are allocated", want, network), func() bool {
		out := c.netctl("net", "inspect", network)
		return strings.Contains(out, text) || want == 0 && !strings.Contains(out, "allocatedAddressesCount") && !strings.Contains(out, "numEndpoints")
	})
}

// TestDocker is a day with each Engine.
func TestDocker(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, version := range engines() {
		t.Run("Engine "+version, func(t *testing.T) {
			t.Parallel()
			c := dockers{up(t, lab.Config{Hosts: 2, Docker: version, Relay: version == lab.DockerBuilt})}
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
			c.netctl("net", "create", "back", "--subnet=30.1.1.0/24")
			c.netctl("group", "create", "front", "web")
			c.netctl("tenant", "create", "blue")
			c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
			for _, host := range []string{"host1", "host2"} {
				c.networks(host, "front", "back", "web", "front/blue")
			}
			for _, step := range []struct {
				name string
				run  func(dockers)
			}{
				{"containers talk", dockersTalk},
				{"addresses", dockerAddresses},
				{"connect and disconnect", dockerConnect},
				{"networks made by hand", dockerHandMade},
				{"stop, start and restart", dockerRestart},
				{"agent restarts", dockerAgentRestarts},
				{"containers tell their names and labels", dockerLabels},
				{"containers provide services", dockerServices},
				{"nothing leaks", dockerLeaks},
			} {
				t.Run(step.name, func(t *testing.T) { step.run(c.sub(t)) })
			}
			c.netctl("group", "rm", "web")
			c.netctl("net", "rm", "front")
			c.netctl("net", "rm", "back")
			c.networks("host1", "front/blue")
			c.networks("host2", "front/blue")

			host, err := c.Host("host2")
			if err != nil {
				t.Fatal(err)
			}
			if err := host.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if out := c.run("host2", "netplugin cleanup"); !strings.Contains(out, "removed docker network front/blue") {
				t.Errorf("netplugin cleanup says %q", out)
			}
			c.networks("host2")
		})
	}
}

// cleanUp removes all containers of both hosts.
func (c dockers) cleanUp() {
	c.t.Helper()
	for _, host := range []string{"host1", "host2"} {
		if ids := strings.Fields(c.docker(host, "ps", "-aq")); len(ids) > 0 {
			c.docker(host, append([]string{"rm", "-f"}, ids...)...)
		}
	}
	c.allocated("front", 0)
	c.allocated("back", 0)
}

func dockersTalk(c dockers) {
	defer c.cleanUp()
	c.container("host1", "app", "front")
	b := c.container("host2", "base", "front")
	web := c.container("host2", "web1", "web")
	blue := c.container("host2", "blue1", "front/blue")
	if !strings.HasPrefix(web, "20.1.1.") {
		c.t.Errorf("container of the group at %s, want an address of its network", web)
	}
	c.pings("host1", "app", b)
	c.pings("host1", "app", web)
	// Engines from 26 on ask the name servers of the host from the host itself: only those
	// that a container was given are asked on its network, where the agent answers.
	c.container("host1", "near", "front", "--dns", "192.168.2.1")
	c.pings("host1", "app", "near") // by name
	c.eventually("a container of another host has a name", func() bool {
		_, err := c.try("host1", "exec", "near", "ping", "-c", "1", "-w", "5", "base")
		return err == nil
	})
	v6 := c.docker("host2", "inspect", "-f", "{{.NetworkSettings.Networks.front.GlobalIPv6Address}}", "base")
	c.pings("host1", "app", v6)
	c.container("host1", "blue2", "front/blue")
	c.pings("host1", "blue2", blue)
	c.pingsNot("host1", "blue2", web)
	for _, want := range []string{"default via 20.1.1.254 dev eth0", "20.1.1.0/24 dev eth0"} {
		if out := c.docker("host1", "exec", "app", "ip", "route"); !strings.Contains(out, want) {
			c.t.Errorf("routes %q, want %q", out, want)
		}
	}
	if out := c.docker("host1", "exec", "app", "ip", "link", "show", "eth0"); !strings.Contains(out, "mtu 1450") || !strings.Contains(out, "02:02:14:01:01:") {
		c.t.Errorf("link %q, want mtu 1450 and a MAC address that tells the IP address", out)
	}
}

func dockerAddresses(c dockers) {
	defer c.cleanUp()
	if got := c.container("host1", "app", "front", "--ip", "20.1.1.77", "--ip6", "2001:db8:1::77"); got != "20.1.1.77" {
		c.t.Errorf("asked for 20.1.1.77, got %s", got)
	}
	b := c.container("host2", "base", "front")
	c.pings("host2", "base", "20.1.1.77")
	c.pings("host2", "base", "2001:db8:1::77")
	for ip, want := range map[string]string{"20.1.1.77": "Address already in use", "20.1.1.254": "Address already in use", b: "Address already in use"} {
		if out, err := c.try("host2", "run", "-d", "--name", "late", "--network", "front", "--ip", ip, lab.Image, "true"); err == nil || !strings.Contains(err.Error(), want) {
			c.t.Errorf("--ip %s: %s, %v, want %q", ip, out, err, want)
		}
		c.docker("host2", "rm", "-f", "late")
	}
	c.container("host1", "mac1", "front", "--mac-address", "02:aa:bb:cc:dd:01")
	if out := c.docker("host1", "exec", "mac1", "ip", "link", "show", "eth0"); !strings.Contains(out, "02:aa:bb:cc:dd:01") {
		c.t.Errorf("link %q, want the MAC address asked for", out)
	}
	c.pings("host1", "mac1", b)
}

func dockerConnect(c dockers) {
	defer c.cleanUp()
	c.container("host1", "app", "front")
	b := c.container("host2", "base", "back")
	c.docker("host1", "network", "connect", "--alias", "friend", "back", "app")
	c.pings("host1", "app", b)
	c.container("host1", "near2", "back")
	c.pings("host1", "near2", "friend")
	c.allocated("back", 3)
	c.docker("host1", "network", "disconnect", "back", "app")
	c.allocated("back", 2)
	if out := c.docker("host1", "exec", "app", "ip", "-o", "addr"); strings.Contains(out, "30.1.1.") || !strings.Contains(out, "20.1.1.") {
		c.t.Errorf("addresses after disconnect: %s", out)
	}
}

func dockerHandMade(c dockers) {
	defer func() {
		c.cleanUp()
		c.docker("host1", "network", "rm", "mine", "tagged")
		c.networks("host1", "front", "back", "web", "front/blue")
	}()
	c.docker("host1", "network", "create", "-d", "netplugin", "--ipam-driver", "netplugin", "--internal", "--subnet", "20.1.1.0/24",
		"--ipam-opt", "tenant=default", "--ipam-opt", "network=front", "mine")
	c.docker("host1", "network", "create", "-d", "netplugin", "--ipam-driver", "netplugin", "--ipam-opt", "contiv-tag=web.default", "-o", "contiv-tag=web.default", "tagged")
	b := c.container("host2", "base", "front")
	c.container("host1", "int1", "mine")
	c.pings("host1", "int1", b)
	if out := c.docker("host1", "exec", "int1", "ip", "route"); strings.Contains(out, "default") {
		c.t.Errorf("routes in an internal network: %s", out)
	}
	c.container("host1", "tag1", "tagged")
	c.pings("host1", "tag1", b)
	c.eventually("the container is in the group whose tag its network has", func() bool {
		return strings.Contains(c.netctl("group", "inspect", "web"), `"containerName": "tag1"`)
	})
	for _, bad := range [][]string{{"--ipam-opt", "network=none"}, {"--ipam-opt", "network=front", "--subnet", "99.1.1.0/24"}, {}} {
		args := slices.Concat([]string{"network", "create", "-d", "netplugin", "--ipam-driver", "netplugin"}, bad, []string{"bad"})
		if out, err := c.try("host1", args...); err == nil {
			c.t.Errorf("docker %s: %s, want an error", strings.Join(args, " "), out)
		}
	}
}

func dockerRestart(c dockers) {
	defer c.cleanUp()
	c.container("host1", "app", "front")
	b := c.container("host2", "base", "front")
	c.docker("host1", "restart", "app")
	c.pings("host1", "app", b)
	c.docker("host1", "stop", "app")
	c.allocated("front", 1)
	c.docker("host1", "start", "app")
	c.pings("host1", "app", b)
}

// dockerAgentRestarts: not a packet is lost, and what happens meanwhile waits or is
// caught up with.
func dockerAgentRestarts(c dockers) {
	defer c.cleanUp()
	c.container("host1", "app", "front")
	b := c.container("host2", "base", "front")
	c.pings("host1", "app", b)
	host, err := c.Host("host1")
	if err != nil {
		c.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		out, err := c.try("host1", "exec", "app", "ping", "-c", "100", "-i", "0.05", "-W", "20", b)
		if err != nil || !strings.Contains(out, "100 packets received") {
			c.t.Errorf("ping while agents restart: %v\n%s", err, tail(out))
		}
	})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := host.RestartDaemon(c.t.Context(), "netplugin", signal); err != nil {
			c.t.Error(err)
		}
	}
	wg.Wait()
	c.container("host1", "late", "front")
	c.pings("host1", "late", b)
}

func dockerLabels(c dockers) {
	defer c.cleanUp()
	c.container("host1", "labelled", "front", "--label", "app=db")
	c.eventually("netctl shows name and label", func() bool {
		out := c.netctl("net", "inspect", "front")
		return strings.Contains(out, `"containerName": "labelled"`) && strings.Contains(out, "app:db")
	})
	c.docker("host1", "rename", "labelled", "renamed")
	c.eventually("netctl shows the new name", func() bool {
		return strings.Contains(c.netctl("net", "inspect", "front"), `"containerName": "renamed"`)
	})
}

// kill ends a daemon at once and starts it again.
func (c dockers) kill(host, daemon string) {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := h.RestartDaemon(c.t.Context(), daemon, syscall.SIGKILL); err != nil {
		c.t.Error(err)
	}
}

// dockerLeaks does this and that at random, with daemons that are killed in between.
func dockerLeaks(c dockers) {
	defer c.cleanUp()
	steps := rand.New(rand.NewPCG(1, 2))
	var names []string
	for i := range 24 {
		host := fmt.Sprintf("host%d", 1+steps.IntN(2))
		network := []string{"front", "back", "web"}[steps.IntN(3)]
		switch {
		case i%12 == 11:
			c.kill(host, "netplugin")
		case i == 6:
			c.kill("host1", "netmaster")
		case len(names) > 2 && steps.IntN(2) == 0:
			where, name, _ := strings.Cut(names[0], "/")
			names = names[1:]
			c.docker(where, "rm", "-f", name)
		case steps.IntN(5) == 0: // one that cannot start
			if out, err := c.try(host, "run", "--rm", "--network", network, lab.Image, "/no/such/program"); err == nil {
				c.t.Errorf("a program that does not exist runs: %s", out)
			}
		default:
			name := fmt.Sprint("r", i)
			c.container(host, name, network)
			names = append(names, host+"/"+name)
		}
	}
}
