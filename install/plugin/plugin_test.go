package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

// config is what is looked at here of config.json.
type config struct {
	Entrypoint []string
	Network    struct{ Type string }
	Interface  struct {
		Types  []string
		Socket string
	}
	Linux  struct{ Capabilities []string }
	Mounts []struct{ Source, Destination string }
	Env    []struct {
		Name, Value string
		Settable    []string
	}
}

func read(t *testing.T) config {
	t.Helper()
	var c config
	if err := json.Unmarshal([]byte(Config), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConfig: what can be set is what the daemons and the script know, and everything can
// be.
func TestConfig(t *testing.T) {
	known := []byte(start)
	for _, daemon := range []string{"netmaster", "netplugin"} {
		b, err := os.ReadFile(filepath.Join("../../scripts/systemd", daemon+".env"))
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, b...)
	}
	c := read(t)
	names := map[string]string{}
	for _, e := range c.Env {
		if !regexp.MustCompile(e.Name + `\b`).Match(known) {
			t.Errorf("nobody knows %s", e.Name)
		}
		if !slices.Equal(e.Settable, []string{"value"}) {
			t.Errorf("%s cannot be set", e.Name)
		}
		if _, twice := names[e.Name]; twice {
			t.Errorf("%s is there twice", e.Name)
		}
		names[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"CONTIV_ROLE": "netplugin", "CONTIV_LOG_DIR": "/var/log/contiv", "CONTIV_NETPLUGIN_ETCD_ENDPOINTS": "http://127.0.0.1:2379",
		"CONTIV_NETMASTER_ETCD_ENDPOINTS": "http://127.0.0.1:2379", "CONTIV_NETPLUGIN_VXLAN_PORT": "4789", "CONTIV_NETMASTER_EXTERNAL_ADDRESS": "0.0.0.0:9999",
		"CONTIV_NETMASTER_PLUGIN_NAME": "netplugin", "CONTIV_NETPLUGIN_MODE": "", "CONTIV_NETMASTER_INFRA": "default", "CONTIV_START_OVS": "1",
	} {
		if got, ok := names[name]; !ok || got != want {
			t.Errorf("%s is %q, %t, want %q", name, got, ok, want)
		}
	}
	if c.Network.Type != "host" || c.Interface.Socket != "netplugin.sock" || len(c.Interface.Types) != 2 || !slices.Contains(c.Linux.Capabilities, "CAP_NET_RAW") {
		t.Errorf("the Engine would not run this as a network driver: %+v", c)
	}
	for _, m := range c.Mounts {
		if m.Source == "/var/run" || m.Source == "/run" {
			t.Errorf("all of %s is mounted", m.Source)
		}
	}
}

// elsewhere are settings of other runtimes, and paths that mounts in config.json decide.
var elsewhere = regexp.MustCompile(`_(K8S_|CNI_|MESOS|JOIN_ACCOUNT|JOIN_CA|CA_CONFIGMAP)|_(SERVICE_PROXY|TENANCY|UNKNOWN_POLICIES|DOCKER_SOCKET|DOCKER_PLUGIN_SOCKET|SOCKET|OVSDB|RESOLV_CONF)$`)

// TestAllSettings: the plugin has every setting of the daemons, and none has a secret.
func TestAllSettings(t *testing.T) {
	names := map[string]string{}
	for _, e := range read(t).Env {
		names[e.Name] = e.Value
	}
	for _, daemon := range []string{"netmaster", "netplugin"} {
		b, err := os.ReadFile(filepath.Join("../../scripts/systemd", daemon+".env"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`CONTIV_[A-Z0-9_]+`).FindAllString(string(b), -1) {
			if _, ok := names[name]; !ok && !elsewhere.MatchString(name) {
				t.Errorf("%s of %s cannot be set", name, daemon)
			}
		}
	}
	for name, value := range names {
		if regexp.MustCompile(`(USER|TOKEN|KEY)$`).MatchString(name) && value != "" {
			t.Errorf("%s is %q for everybody", name, value)
		}
	}
}

// TestWrite: what docker plugin create takes is there, and what the plugin starts.
func TestWrite(t *testing.T) {
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "v2plugin")
	if err := Write(bin, dir); !errs.Is(err, errs.NotFound) {
		t.Errorf("without binaries: %v, want an error of kind NotFound", err)
	}
	self, err := os.Executable() // licences are those of its modules
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"netmaster", "netplugin", "netctl", "contivk8s", "netcontiv"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(bin, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "config.json")); err != nil || string(got) != Config {
		t.Errorf("config.json is %q, %v", got, err)
	}
	for _, name := range append([]string{"/contiv/bin/netplugin", "/contiv/bin/netmaster", "/bin/sh", "/sbin/../usr/sbin/ovsdb-server", "/usr/sbin/nft"}, read(t).Entrypoint...) {
		info, err := os.Stat(filepath.Join(dir, "rootfs", name))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, want a program", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "rootfs/tmp")); err != nil || info.Mode()&os.ModeSticky == 0 || info.Mode().Perm() != 0o777 {
		t.Errorf("/tmp: %v, %v", info, err)
	}
	if err := Write(bin, dir); !errs.Is(err, errs.Exists) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("again: %v, want an error of kind Exists", err)
	}
}
