package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/contiv/netplugin/install/plugin"
)

// Plugin is the managed plugin of a lab, as its Engines know it.
const Plugin = plugin.Name

// PluginDir is the directory that docker plugin create takes.
func (l *Lab) PluginDir() string { return l.path("v2plugin") }

// PluginSettings are those of the agent as the managed plugin of the host's Engine.
func (h *Host) PluginSettings() []string {
	c := h.lab.cfg
	return []string{
		"CONTIV_START_OVS=0", "CONTIV_MODE=" + c.Mode,
		"CONTIV_NETPLUGIN_NET_MODE=" + c.NetMode, "CONTIV_NETPLUGIN_FORWARD_MODE=" + c.FwdMode,
		"CONTIV_NETPLUGIN_HOST=" + h.Name, "CONTIV_NETPLUGIN_CONTROL_IP=" + h.ControlIP(), "CONTIV_NETPLUGIN_VTEP_IP=" + h.VTEPIP(),
		"CONTIV_NETPLUGIN_ETCD_ENDPOINTS=" + h.storeFlags()[1], "CONTIV_NETPLUGIN_LOG_LEVEL=" + c.LogLevel,
	}
}

// installPlugin installs the agent as a managed plugin of the host's Engine, and waits for it to
// be ready.
func (h *Host) installPlugin(ctx context.Context) error {
	began := time.Now()
	for _, args := range [][]string{
		{"plugin", "create", Plugin, h.lab.PluginDir()},
		append([]string{"plugin", "set", Plugin}, h.PluginSettings()...),
		{"plugin", "enable", Plugin},
	} {
		if _, err := h.Docker(ctx, args...); err != nil {
			return fmt.Errorf("%s: docker %s %s: %w\n%s", h.Name, args[0], args[1], err, h.LogTail("plugin_bootup"))
		}
	}
	if err := h.AwaitReady(ctx, netplugin); err != nil {
		return err
	}
	h.lab.say("%s: managed plugin ready after %s", h.Name, since(began))
	return nil
}

// removePluginCgroups removes the cgroups of managed plugins of a lab's host, or of all
// with "*": Engines make them at the root of the hierarchies, by the ids of the plugins.
func removePluginCgroups(dir, host string) error {
	plugins, err := filepath.Glob(filepath.Join(dir, "hosts", host, "fs/var/lib/docker/plugins", strings.Repeat("[0-9a-f]", 64)))
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range plugins {
		failed = append(failed, removeCgroups(filepath.Base(p)))
	}
	return errors.Join(failed...)
}
