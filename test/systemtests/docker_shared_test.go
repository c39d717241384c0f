package systemtests

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestDockerShared is the shape of Engines up to 20.10: they share networks through a
// store, and netmaster makes them, once for all.
func TestDockerShared(t *testing.T) {
	c := dockers{up(t, lab.Config{Hosts: 2, Docker: lab.DockerPacked, Store: lab.StoreEtcd, SharedDocker: true})}
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.netctl("group", "create", "front", "web")
	id := map[string]string{}
	for _, host := range []string{"host1", "host2"} {
		c.networks(host, "front", "web")
		id[host] = c.docker(host, "network", "inspect", "-f", "{{.Id}} {{.Scope}}", "front")
	}
	if id["host1"] != id["host2"] || !strings.HasSuffix(id["host1"], " global") {
		t.Errorf("network front is %s on host1 and %s on host2, want one for both, of scope global", id["host1"], id["host2"])
	}
	c.container("host1", "app", "front")
	b := c.container("host2", "base", "front")
	w := c.container("host2", "web1", "web")
	c.pings("host1", "app", b)
	c.pings("host1", "app", w)
	if out, err := c.NetctlOutput(t.Context(), "net", "rm", "front"); err == nil {
		t.Errorf("a network with containers is removed: %s", out)
	}
	c.docker("host1", "rm", "-f", "app")
	c.docker("host2", "rm", "-f", "base", "web1")
	c.allocated("front", 0)
	c.netctl("group", "rm", "web")
	c.netctl("net", "rm", "front")
	c.networks("host1")
	c.networks("host2")
}
