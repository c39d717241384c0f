package nodesetup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
)

func config(t *testing.T) Config {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, []byte("plugin"), 0o644); err != nil {
		t.Fatal(err)
	}
	return Config{
		PluginDir: dir,
		ConfDir:   filepath.Join(dir, "net.d"), BinDir: filepath.Join(dir, "bin"), Source: source, Socket: "/run/contiv/contiv-cni.sock",
		Ready: func() error { return nil }, Log: log,
	}
}

func TestInstall(t *testing.T) {
	c := config(t)
	if err := os.MkdirAll(c.ConfDir, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(c.ConfDir, oldConf)
	if err := os.WriteFile(old, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	c.Ready = func() error {
		if asked.Add(1) > 2 {
			return nil
		}
		if _, err := os.Stat(filepath.Join(c.ConfDir, Conflist)); err == nil {
			t.Error("the configuration is there before the agent is ready")
		}
		return errors.New("not yet")
	}
	for range 2 { // again, as by the next agent
		if err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	list, err := libcni.ConfListFromFile(filepath.Join(c.ConfDir, Conflist))
	if err != nil || list.Name != "contiv-net" || len(list.Plugins) != 2 || list.Plugins[0].Network.Type != Plugin || !list.Plugins[1].Network.Capabilities["portMappings"] {
		t.Errorf("configuration %+v, %v", list, err)
	}
	plugin := filepath.Join(c.BinDir, Plugin)
	info, err := os.Stat(plugin)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("plugin %v, %v", info, err)
	}
	if b, err := os.ReadFile(plugin); err != nil || string(b) != "plugin" {
		t.Errorf("plugin %q, %v", b, err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old configuration stays: %v", err)
	}
	for _, dir := range []string{c.ConfDir, c.BinDir} {
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%s has %v, %v; expected one file", dir, files, err)
		}
	}
}

func TestNothingToInstall(t *testing.T) {
	if err := Run(t.Context(), Config{}); err != nil {
		t.Error(err)
	}
	c := config(t)
	c.Ready = func() error { return errors.New("never") }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, c); err != nil {
		t.Errorf("an agent that ends before it is ready: %v", err)
	}
	if _, err := os.Stat(c.ConfDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is written: %v", err)
	}
	c = config(t)
	c.Source = "/no/such/file"
	if err := Run(t.Context(), c); err == nil {
		t.Error("a plugin that is missing is installed")
	}
	if _, err := os.Stat(filepath.Join(c.ConfDir, Conflist)); err == nil {
		t.Error("the configuration is there without the plugin")
	}
}

// The configuration is of the newest version that the plugin behind ours speaks too.
func TestVersionOfTheConfiguration(t *testing.T) {
	for _, c := range []struct{ name, portmap, want string }{
		{"new", `echo '{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0","1.1.0"]}'`, "1.1.0"},
		{"old", `echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}'`, "1.0.0"},
		{"broken", `exit 1`, "1.0.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := config(t)
			if err := os.WriteFile(filepath.Join(conf.PluginDir, "portmap"), []byte("#!/bin/sh\n"+c.portmap+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := Run(t.Context(), conf); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(conf.ConfDir, Conflist)
			list, err := libcni.ConfListFromFile(path)
			if err != nil || list.CNIVersion != c.want {
				t.Errorf("configuration %+v, %v; expected version %s", list, err, c.want)
			}
			// Runtimes that do not know of a choice take the version every plugin speaks.
			var plain struct{ CNIVersion string }
			if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, &plain) != nil || plain.CNIVersion != "1.0.0" {
				t.Errorf("plain version %q, %v; expected 1.0.0", plain.CNIVersion, err)
			}
		})
	}
}

// TestOwnConf: what users write themselves, also as earlier releases had it.
func TestOwnConf(t *testing.T) {
	c := config(t)
	for name, conf := range map[string]string{
		"of earlier releases": `{"cniVersion":"0.3.1","name":"contiv-net","type":"contivk8s"}`,
		"a list":              `{"cniVersion":"0.4.0","name":"contiv-net","plugins":[{"type":"contivk8s"},{"type":"tuning"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckConf(conf); err != nil {
				t.Fatal(err)
			}
			c.Conf = conf
			if err := Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			list, err := libcni.ConfListFromFile(filepath.Join(c.ConfDir, Conflist))
			if err != nil || list.Name != "contiv-net" || list.Plugins[0].Network.Type != Plugin || len(list.Plugins) != strings.Count(conf, "type") {
				t.Errorf("configuration %+v, %v", list, err)
			}
		})
	}
	for _, conf := range []string{"{", "[]", `{"name":"x"}`, `{"plugins":1}`} {
		if CheckConf(conf) == nil {
			t.Errorf("%s was taken", conf)
		}
	}
}

// TestRemove: both files, what there is of them, and nothing else.
func TestRemove(t *testing.T) {
	c := config(t)
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(c.ConfDir, "20-other.conflist")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	remove := func(dryRun bool) (said []string) {
		if err := Remove(c.ConfDir, c.BinDir, dryRun, func(path string) { said = append(said, path) }); err != nil {
			t.Fatal(err)
		}
		return said
	}
	both := []string{filepath.Join(c.ConfDir, Conflist), filepath.Join(c.BinDir, Plugin)}
	for i, want := range [][]string{both, both, nil} {
		if diff := cmp.Diff(want, remove(i == 0)); diff != "" {
			t.Errorf("time %d: %s", i, diff)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a stranger's: %v", err)
	}
	if err := Remove("", "", false, func(path string) { t.Errorf("removed %s", path) }); err != nil {
		t.Error(err)
	}
}
