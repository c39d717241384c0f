package dockplugin

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func TestManagedID(t *testing.T) {
	id := strings.Repeat("0a", 32)
	const other = "22 1 0:5 / / rw - overlay overlay rw\n"
	for name, mounts := range map[string]string{
		"tmpfs":  other + "23 22 0:40 /docker/plugins/" + id + " /run/docker/plugins rw,relatime - tmpfs tmpfs rw\n" + other,
		"shared": "23 22 8:1 /var/run/docker/plugins/" + id + " /run/docker/plugins rw shared:7 - ext4 /dev/sda1 rw\n",
	} {
		if got, err := managedID(mounts); err != nil || got != id {
			t.Errorf("%s: %q, %v, want %s", name, got, err, id)
		}
	}
	for name, mounts := range map[string]string{
		"nothing": "", "short": "a b c d\n", "elsewhere": "23 22 0:40 /docker/plugins/" + id + " /run/docker/other rw - tmpfs tmpfs rw\n",
		"the host's": "23 22 0:40 /docker/plugins /run/docker/plugins rw - tmpfs tmpfs rw\n",
	} {
		if got, err := managedID(mounts); !errs.Is(err, errs.NotFound) {
			t.Errorf("%s: %q, %v, want an error of kind NotFound", name, got, err)
		}
	}
}

// TestManagedPlugin: docker networks have the name under which the plugin was installed.
func TestManagedPlugin(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Driver, c.PluginID = "", strings.Repeat("0", 64) })
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("there is a docker network", func() bool {
		n := w.engine.named("net1")
		return n != nil && n.Driver == "contiv/v2plugin:latest" && n.IPAMDriver == n.Driver
	})
}
