package ovsd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ovsdb"
)

// Finding is one result of a check of this host.
type Finding struct {
	OK     bool
	What   string // what was checked
	Detail string // what was found, and what to do when it is not OK
}

// Preflight checks whether this host can run the driver. It changes nothing.
func Preflight(ctx context.Context, cfg Config) []Finding {
	if err := cfg.setDefaults(); err != nil {
		return []Finding{{false, "options", err.Error()}}
	}
	out := []Finding{checkPrivileges()}
	out = append(out, checkDatabase(ctx, cfg)...)
	out = append(out, checkDatapath(cfg), checkVTEP(cfg))
	out = append(out, checkUDPPort(int(cfg.VXLANPort)))
	for _, name := range cfg.Uplinks {
		f := Finding{true, "uplink " + name, "can be given to the VLAN bridge"}
		if veth.Exists(name) && cfg.Takeover {
			f.Detail = "can be taken over, with the host's addresses on it"
		} else if err := checkUplink(name, cfg); err != nil {
			f.OK, f.Detail = false, err.Error()
		}
		out = append(out, f)
	}
	return out
}

func checkPrivileges() Finding {
	f := Finding{true, "privileges", "CAP_NET_ADMIN is there"}
	var data [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&hdr, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		f.OK, f.Detail = false, "CAP_NET_ADMIN is missing; run as root"
	}
	return f
}

func checkDatabase(ctx context.Context, cfg Config) []Finding {
	f := Finding{true, "Open vSwitch", ""}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	db := ovsdb.New(ovsdb.Config{Target: cfg.OVSDB, Monitor: map[string][]string{"Open_vSwitch": {"ovs_version", "datapath_types"}}})
	done := make(chan struct{})
	go func() { defer close(done); _ = db.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := db.Wait(ctx, hasRoot); err != nil {
		f.OK, f.Detail = false, fmt.Sprintf("%s does not answer (%v); install and start openvswitch-switch", cfg.OVSDB, err)
		return []Finding{f}
	}
	var version string
	var ran bool
	db.View(func(v ovsdb.View) {
		v.Each("Open_vSwitch", func(_ ovsdb.UUID, row ovsdb.Row) {
			version, ran = row.String("ovs_version"), len(row.Strings("datapath_types")) > 0
		})
	})
	switch {
	case !ran:
		f.OK, f.Detail = false, "ovsdb-server answers but ovs-vswitchd has never run; start it"
	case version == "":
		f.Detail = "runs; its start script has not recorded the version, 2.17 or newer is needed"
	case !atLeast(version, 2, 17):
		f.OK, f.Detail = false, "version "+version+" is too old, 2.17 or newer is needed"
	default:
		f.Detail = "version " + version
	}
	return []Finding{f}
}

// atLeast compares dotted versions; parts that are not numbers count as 0.
func atLeast(version string, major, minor int) bool {
	parts := append(strings.Split(version, "."), "0", "0")
	a, _ := strconv.Atoi(parts[0])
	b, _ := strconv.Atoi(parts[1])
	return a > major || a == major && b >= minor
}

func checkDatapath(cfg Config) Finding {
	kernel := kernelDatapath()
	f := Finding{true, "datapath", "netdev (userspace)"}
	switch {
	case cfg.Datapath == "system" && !kernel:
		f.OK, f.Detail = false, "the kernel has no openvswitch module; load it or use --ovs-datapath netdev"
	case kernel && cfg.Datapath != "netdev":
		f.Detail = "system (kernel)"
	case cfg.Datapath == "auto":
		f.Detail = "netdev (userspace), because the kernel has no openvswitch module: slower, and the tunnel address must be on a bridge of that datapath"
	}
	return f
}

func checkVTEP(cfg Config) Finding {
	link := linkWithAddr(cfg.VTEP)
	if link == nil {
		return Finding{false, "tunnel address", fmt.Sprintf("%s is not configured on this host; give --vtep-ip an address of an interface that leads to the other hosts", cfg.VTEP)}
	}
	mtu := TunnelMTU(cfg.VTEP)
	if mtu < 1280 {
		return Finding{false, "tunnel address", fmt.Sprintf("%s on %s leaves an MTU of %d for containers, IPv6 needs 1280", cfg.VTEP, link.Attrs().Name, mtu)}
	}
	return Finding{true, "tunnel address", fmt.Sprintf("%s on %s, MTU for containers %d", cfg.VTEP, link.Attrs().Name, mtu)}
}

func checkUDPPort(port int) Finding {
	f := Finding{true, fmt.Sprintf("UDP port %d", port), "free, or held by Open vSwitch"}
	holder := udpHolder(port)
	if holder != "" && !strings.HasPrefix(holder, "ovs-vswitchd") {
		f.OK, f.Detail = false, fmt.Sprintf("held by %s; Docker's overlay and other SDNs use it too: stop that, or set --vxlan-port on all hosts", holder)
	}
	return f
}

// CheckTCPPort checks whether a TCP port of this host is free, and if not, names its user.
func CheckTCPPort(port int) Finding {
	f := Finding{true, fmt.Sprintf("TCP port %d", port), "free"}
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err == nil {
		l.Close()
		return f
	}
	holder := socketHolder([]string{"/proc/net/tcp", "/proc/net/tcp6"}, port, "0A")
	if holder == "" {
		holder = "another process"
	}
	if strings.HasPrefix(holder, "netplugin ") {
		f.Detail = "held by a running netplugin"
		return f
	}
	f.OK, f.Detail = false, "held by "+holder
	return f
}

// udpHolder names the process that has bound a UDP port; VXLAN sockets of the kernel have
// none.
func udpHolder(port int) string {
	return socketHolder([]string{"/proc/net/udp", "/proc/net/udp6"}, port, "")
}

// socketHolder looks up a port in the kernel's socket tables (proc(5)), optionally in one
// state only, and finds the process that has the socket open.
func socketHolder(tables []string, port int, state string) string {
	for _, table := range tables {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) || state != "" && fields[3] != state {
				continue
			}
			if who := inodeHolder(fields[9]); who != "" {
				return who
			}
			return "the kernel"
		}
	}
	return ""
}

func inodeHolder(inode string) string {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == "socket:["+inode+"]" {
			pid := strings.Split(fd, "/")[2]
			comm, _ := os.ReadFile("/proc/" + pid + "/comm")
			return strings.TrimSpace(string(comm)) + " (pid " + pid + ")"
		}
	}
	return ""
}
