package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/test/lab/hostinit"
)

// tunnelLink is the host's end of the tunnel network. The kernel's datapath sends through the
// host's own network, so the tunnel address is on this link there.
const tunnelLink = "eth1"

// tunnelBridge carries the tunnel address on its local port and tunnelLink as its only
// other port. The userspace datapath finds the way to a remote VTEP through it.
const tunnelBridge = "br-ext"

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

func (h *Host) startOVS(ctx context.Context) error {
	began := time.Now()
	if err := h.startOVSDB(ctx); err != nil {
		return err
	}
	if err := h.startVswitchd(ctx); err != nil {
		return err
	}
	h.lab.say("%s: Open vSwitch ready after %s", h.Name, since(began))
	return nil
}

func (h *Host) startOVSDB(ctx context.Context) error {
	const db = "/etc/openvswitch/conf.db"
	if _, err := os.Stat(h.file(db)); errors.Is(err, fs.ErrNotExist) {
		if _, err := h.Output(ctx, "ovsdb-tool", "create", db, ovsSchema); err != nil {
			return err
		}
	}
	err := h.launch(ctx, hostinit.Daemon{Name: ovsdbServer, Log: logPath(ovsdbServer), Args: []string{
		"ovsdb-server", db, "--remote=punix:/run/openvswitch/db.sock", "--remote=ptcp:6640:127.0.0.1",
		"--remote=db:Open_vSwitch,Open_vSwitch,manager_options", "--pidfile", "-vconsole:info", "-vsyslog:off",
	}})
	if err != nil {
		return err
	}
	if err := h.AwaitReady(ctx, ovsdbServer); err != nil {
		return err
	}
	_, err = h.Output(ctx, "ovs-vsctl", ovsWait(ctx), "--no-wait", "init",
		"--", "set", "Open_vSwitch", ".", "external_ids:system-id="+h.Name, "external_ids:hostname="+h.Name)
	return h.explain(err, ovsdbServer)
}

func (h *Host) startVswitchd(ctx context.Context) error {
	err := h.launch(ctx, hostinit.Daemon{Name: vswitchd, Restart: true, Log: logPath(vswitchd), Args: []string{
		"ovs-vswitchd", "--pidfile", "-vconsole:info", "-vsyslog:off",
	}})
	if err != nil {
		return err
	}
	return h.ConnectTunnel(ctx)
}

// ConnectTunnel connects the host's Open vSwitch, whoever runs it, to the tunnel network.
func (h *Host) ConnectTunnel(ctx context.Context) error {
	if h.lab.cfg.Datapath == DatapathKernel {
		return h.startKernelDatapath(ctx)
	}
	// A veth has no hardware that would fill in checksums.
	links := []string{tunnelLink, "eth2"}
	if h.lab.cfg.Takeover {
		links = append(links, "eth0")
	}
	for _, link := range links {
		if _, err := h.Output(ctx, "ethtool", "-K", link, "tx", "off"); err != nil {
			return err
		}
	}
	// Without --no-wait ovs-vsctl returns when ovs-vswitchd has made what is asked; but
	// it waits only if something changed, which the last line sees to.
	_, err := h.Output(
		ctx, "ovs-vsctl", ovsWait(ctx), "--may-exist", "add-br", tunnelBridge,
		"--", "set", "bridge", tunnelBridge, "datapath_type=netdev", fmt.Sprintf("other_config:hwaddr=02:60:00:00:00:%02x", h.Number),
		"--", "--may-exist", "add-port", tunnelBridge, tunnelLink,
		"--", "set", "Open_vSwitch", ".", startedNow(),
	)
	if err != nil {
		return h.explain(err, vswitchd)
	}
	return h.addressTunnel()
}

// TunnelInterface is the link of a host that has its tunnel address.
func (c Config) TunnelInterface() string {
	if c.Datapath == DatapathKernel {
		return tunnelLink
	}
	return tunnelBridge
}

// startedNow is a setting of the switch that is new each time.
func startedNow() string {
	return "external_ids:lab-started=" + strconv.FormatInt(time.Now().UnixNano(), 10)
}

// startKernelDatapath waits for ovs-vswitchd. There is nothing to connect.
func (h *Host) startKernelDatapath(ctx context.Context) error {
	_, err := h.Output(ctx, "ovs-vsctl", ovsWait(ctx), "set", "Open_vSwitch", ".", startedNow())
	return h.explain(err, vswitchd)
}

// addressTunnel sets the address as the host's init does when the bridge appears, so that the
// address is there when the caller goes on.
func (h *Host) addressTunnel() error {
	return inNetwork(h.pid, func(nl *netlink.Handle, _ netns.NsHandle) error {
		link, err := nl.LinkByName(tunnelBridge)
		if err != nil {
			return fmt.Errorf("find link %s: %w", tunnelBridge, err)
		}
		return hostinit.Address(nl, link, hostPrefix(networks()[1], h.Number))
	})
}

// ovsWait bounds how long ovs-vsctl waits by what is left of ctx.
func ovsWait(ctx context.Context) string {
	seconds := 60
	if deadline, ok := ctx.Deadline(); ok {
		seconds = max(1, int(time.Until(deadline).Seconds()))
	}
	return "--timeout=" + strconv.Itoa(seconds)
}

// explain adds the end of a daemon's log to an error.
func (h *Host) explain(err error, daemon string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", err, h.LogTail(daemon))
}
