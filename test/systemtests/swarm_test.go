package systemtests

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// swarm is a cluster whose Engines are one swarm, with host1 as its manager.
type swarm struct {
	dockers
	image string // by its id: of one with a name a swarm asks the registry
}

func newSwarm(c dockers) swarm {
	c.t.Helper()
	host := func(name string) *lab.Host {
		h, err := c.Host(name)
		if err != nil {
			c.t.Fatal(err)
		}
		return h
	}
	c.docker("host1", "swarm", "init", "--advertise-addr", host("host1").ControlIP())
	token := c.docker("host1", "swarm", "join-token", "-q", "worker")
	c.docker("host2", "swarm", "join", "--advertise-addr", host("host2").ControlIP(), "--token", token, host("host1").ControlIP()+":2377")
	// Engines that import an image each give it different ids.
	archive := filepath.Join(c.t.TempDir(), "image.tar")
	c.docker("host1", "save", "-o", archive, lab.Image)
	c.docker("host2", "load", "-i", archive)
	return swarm{c, c.docker("host1", "images", "-q", "--no-trunc", lab.Image)}
}

// tasks waits until a service has n tasks that run, no other one has a container, and
// returns the containers by host.
func (c swarm) tasks(service string, n int) map[string][]string {
	c.t.Helper()
	on := map[string][]string{}
	c.eventually(fmt.Sprintf("%d tasks of %s run", n, service), func() bool {
		total := 0
		for _, host := range []string{"host1", "host2"} {
			on[host] = strings.Fields(c.docker(host, "ps", "-q", "--filter", "label=com.docker.swarm.service.name="+service))
			total += len(on[host])
		}
		running := strings.Count(c.docker("host1", "service", "ps", "--filter", "desired-state=running", "--format", "{{.CurrentState}}", service), "Running ")
		return total == n && running == n
	})
	return on
}

// service makes a service of idle tasks, spread over the hosts.
func (c swarm) service(name, network string, replicas int, args ...string) {
	c.t.Helper()
	all := append([]string{"service", "create", "--detach", "--no-resolve-image", "--name", name, "--network", network, "--replicas", fmt.Sprint(replicas)}, args...)
	c.docker("host1", append(all, c.image, "sh", "-c", idle)...)
}

// taken waits until the endpoints of a network are exactly as many, and so are its
// addresses but for others, which have no endpoint.
func (c swarm) taken(network string, endpoints, others int) {
	c.t.Helper()
	c.allocated(network, endpoints+others)
	c.eventually(fmt.Sprintf("%d endpoints of %s", endpoints, network), func() bool {
		return strings.Count(c.netctl("net", "inspect", network), `"containerName"`) == endpoints
	})
}

// TestSwarmEngine: users of a swarm make docker networks, by a tag or with a subnet of
// their own, and services on them. What they remove is gone, whatever has been restarted.
func TestSwarmEngine(t *testing.T) {
	versions := engines()
	if !long() { // TestManagedPlugin takes the other one
		versions = versions[:1]
	}
	for _, version := range versions {
		t.Run("Engine "+version, func(t *testing.T) {
			c := newSwarm(dockers{up(t, lab.Config{Hosts: 2, Docker: version, Managed: true, Mode: "swarm-mode", LogLevel: "DEBUG"})})
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
			c.netctl("group", "create", "front", "web", "--tag", "webtag")
			network := func(args ...string) string {
				t.Helper()
				return c.docker("host1", append([]string{"network", "create", "-d", lab.Plugin, "--ipam-driver", lab.Plugin}, args...)...)
			}
			network("--attachable", "-o", "contiv-tag=webtag", "--ipam-opt", "contiv-tag=webtag", "tagged")
			own := network("--subnet", "30.1.1.0/24", "--gateway", "30.1.1.254", "own")

			c.service("web", "tagged", 4, "--endpoint-mode", "dnsrr")
			c.service("app", "own", 3) // with a virtual address, which nobody has
			web := c.tasks("web", 4)
			app := c.tasks("app", 3)
			c.taken("front", 4, 0)
			c.taken(own, 3, 1)
			for _, host := range []string{"host1", "host2"} {
				if len(web[host]) == 0 || len(app[host]) == 0 {
					t.Fatalf("tasks are not on both hosts: %v, %v", web, app)
				}
				c.pings(host, web[host][0], "web")
				c.pings(host, app[host][0], "tasks.app")
			}
			addresses := c.docker("host1", "exec", web["host1"][0], "nslookup", "web")
			if n := strings.Count(addresses, "Address: 20.1.1."); n != 4 {
				t.Errorf("web has %d addresses, want 4:\n%s", n, addresses)
			}
			for _, task := range web["host2"] {
				ip := c.docker("host2", "inspect", "-f", "{{.NetworkSettings.Networks.tagged.IPAddress}}", task)
				c.pings("host1", web["host1"][0], ip)
			}
			c.eventually("the tasks are in the group whose tag the network has", func() bool {
				return strings.Count(c.netctl("group", "inspect", "web"), `"containerName": "web.`) == 4
			})
			c.docker("host2", "run", "-d", "--name", "guest", "--network", "tagged", lab.Image, "sh", "-c", idle)
			c.pings("host2", "guest", "web")
			c.docker("host2", "rm", "-f", "guest")

			// A manager that starts again asks for what it has handed out.
			host, err := c.Host("host1")
			if err != nil {
				t.Fatal(err)
			}
			if err := host.RestartDaemon(t.Context(), "docker", syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.docker("host1", "service", "scale", "--detach", "web=6", "app=1")
			c.tasks("web", 6)
			c.tasks("app", 1)
			c.taken("front", 6, 0)
			c.taken(own, 1, 1)
			c.docker("host1", "service", "scale", "--detach", "web=1")
			web = c.tasks("web", 1)
			c.taken("front", 1, 0)
			for host, tasks := range web {
				for _, task := range tasks {
					c.docker(host, "rm", "-f", task) // the swarm makes another one
				}
			}
			c.tasks("web", 1)
			c.taken("front", 1, 0)

			c.docker("host1", "service", "rm", "web", "app")
			for _, name := range []string{"tagged", "own"} {
				c.eventually("docker network "+name+" can be removed", func() bool {
					_, err := c.try("host1", "network", "rm", name)
					return err == nil
				})
			}
			c.eventually("the network that was made for the swarm has gone", func() bool { return !strings.Contains(c.netctl("net", "ls"), "30.1.1.0/24") })
			c.allocated("front", 0)
			c.netctl("group", "rm", "web")
			c.netctl("net", "rm", "front")
			c.docker("host2", "swarm", "leave")
			c.docker("host1", "swarm", "leave", "--force")
		})
	}
}
