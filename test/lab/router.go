package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

// Values of Config.Routers: what speaks BGP on a router of the physical network.
const (
	RouterFRR  = "frr"
	RouterBIRD = "bird"
)

// Numbers of autonomous systems of a lab.
const (
	HostsAS   = 65002
	RoutersAS = 500
)

// MaxRouters bounds the routers of a lab: router n has address .199+n on the trunk.
const MaxRouters = 50

// Router is a router of the physical network, on the trunk without a VLAN. It speaks
// BGP with every host, and connects a network of its own to the trunk, with one machine
// in it, the outside:
//
//	trunk ── 50.1.1.199+n  router n  60.1.n.1 ── 60.1.n.2  outside n
//	     2001:db8:50::c7+n          2001:db8:60:n::1 ── ::2
//
// Every outside also has the addresses 70.1.1.1 and 2001:db8:70::1, which all routers
// announce.
type Router struct {
	Host
	Daemon string // RouterFRR or RouterBIRD
}

// RouterName is the name of the n-th router, counted from 1; OutsideName that of the
// computer behind it.
func RouterName(n int) string  { return fmt.Sprintf("router%d", n) }
func OutsideName(n int) string { return fmt.Sprintf("outside%d", n) }

// RouterIP is the address of the n-th router on the trunk, RouterIP6 its IPv6 address.
func RouterIP(n int) string  { return fmt.Sprintf("50.1.1.%d", 199+n) }
func RouterIP6(n int) string { return fmt.Sprintf("2001:db8:50::%x", 199+n) }

// OutsideIP is the address of the n-th outside, OutsideIP6 its IPv6 address.
func OutsideIP(n int) string  { return fmt.Sprintf("60.1.%d.2", n) }
func OutsideIP6(n int) string { return fmt.Sprintf("2001:db8:60:%x::2", n) }

// AnycastIP is an address that every outside has.
const AnycastIP, AnycastIP6 = "70.1.1.1", "2001:db8:70::1"

// HostRouterIP is the n-th host's address on the trunk, as in netctl bgp
// create --router-ip; HostRouterIP6 the same for IPv6.
func HostRouterIP(n int) string  { return fmt.Sprintf("50.1.1.%d/24", 9+n) }
func HostRouterIP6(n int) string { return fmt.Sprintf("2001:db8:50::%x/64", 9+n) }

func (l *Lab) newRouters() {
	for i, daemon := range l.cfg.Routers {
		l.routers = append(l.routers, &Router{Host: Host{lab: l, Number: i + 1, Name: RouterName(i + 1)}, Daemon: daemon})
	}
}

// Router returns a router by its name.
func (l *Lab) Router(name string) (*Router, error) {
	for _, r := range l.routers {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, errs.New(errs.NotFound, "router %q is not in the lab, which has %d", name, len(l.routers))
}

// Routers returns the routers in order.
func (l *Lab) Routers() []*Router { return l.routers }

// outside finds the router that a computer is behind.
func (l *Lab) outside(name string) (*Host, string, bool) {
	for _, r := range l.routers {
		if OutsideName(r.Number) == name {
			return &r.Host, hostinit.NetnsDir + "/" + name, true
		}
	}
	return nil, "", false
}

func (l *Lab) startRouter(ctx context.Context, r *Router) error {
	logs := r.file("/var/log")
	if err := os.MkdirAll(logs+"/contiv", 0o755); err != nil {
		return err
	}
	pid, err := l.startInit(ctx, r.Name, hostinit.Config{
		Hostname: r.Name, Overlays: []string{"/etc", "/var"}, Files: r.files(),
		Binds: []hostinit.Bind{{Source: logs, Target: "/var/log"}},
		Sysctls: []hostinit.Sysctl{
			{Path: "net/ipv4/ip_forward", Value: "1"},
			{Path: "net/ipv6/conf/all/forwarding", Value: "1"},
			{Path: "net/ipv4/ping_group_range", Value: "0 2147483647"},
		},
	})
	if err != nil {
		return err
	}
	r.pid = pid
	if err := l.plugRouter(r); err != nil {
		return err
	}
	client, err := r.client()
	if err != nil {
		return err
	}
	if _, err := client.AddNetns(ctx, OutsideName(r.Number)); err != nil {
		return err
	}
	if _, err := r.Output(ctx, "sh", "-ec", r.script()); err != nil {
		return err
	}
	if r.Daemon == RouterFRR {
		if _, err := r.Output(ctx, "install", "-d", "-o", "frr", "-g", "frr", "/run/frr"); err != nil {
			return err
		}
	}
	return r.StartBGP(ctx)
}

// plugRouter connects a router to the trunk.
func (l *Lab) plugRouter(r *Router) error {
	router, err := netns.GetFromPid(r.pid)
	if err != nil {
		return fmt.Errorf("open network namespace of process %d: %w", r.pid, err)
	}
	defer router.Close()
	trunk := networks()[2]
	return inNetwork(l.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		bridge, err := u.LinkByName(trunk.bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", trunk.bridge, err)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = r.port(trunk), bridge.Attrs().Index
		attrs.Flags |= net.FlagUp
		if err := u.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "trunk", PeerNamespace: netlink.NsFd(router)}); err != nil {
			return fmt.Errorf("add link %s: %w", attrs.Name, err)
		}
		return nil
	})
}

// script addresses the router and the computer behind it. Checksums are made in
// software: Open vSwitch's own datapath takes frames as they are.
func (r *Router) script() string {
	return strings.NewReplacer("OUTSIDE", OutsideName(r.Number), "ROUTER4", RouterIP(r.Number), "ROUTER6", RouterIP6(r.Number),
		"ANYCAST4", AnycastIP, "ANYCAST6", AnycastIP6, "NUMBER", fmt.Sprint(r.Number)).Replace(`
ip link set lo up
ip address add ROUTER4/24 dev trunk
ip -6 address add ROUTER6/64 dev trunk nodad
ip link set trunk up
ip link add out type veth peer name eth0 netns OUTSIDE
ip address add 60.1.NUMBER.1/24 dev out
ip -6 address add 2001:db8:60:NUMBER::1/64 dev out nodad
ip link set out up
ip -n OUTSIDE address add 60.1.NUMBER.2/24 dev eth0
ip -n OUTSIDE -6 address add 2001:db8:60:NUMBER::2/64 dev eth0 nodad
ip -n OUTSIDE address add ANYCAST4/32 dev lo
ip -n OUTSIDE -6 address add ANYCAST6/128 dev lo
ip -n OUTSIDE link set eth0 up
ip -n OUTSIDE route add default via 60.1.NUMBER.1
ip -n OUTSIDE -6 route add default via 2001:db8:60:NUMBER::1
ip route add ANYCAST4/32 via 60.1.NUMBER.2
ip -6 route add ANYCAST6/128 via 2001:db8:60:NUMBER::2
ethtool -K trunk tx off >/dev/null
nsenter --net=/run/netns/OUTSIDE ethtool -K eth0 tx off >/dev/null
`)
}

// StartBGP starts the daemons that speak BGP.
func (r *Router) StartBGP(ctx context.Context) error {
	for _, d := range r.bgpDaemons() {
		if d.Name == "zebra" { // bgpd looks for its socket once, and then ten seconds later
			if _, err := r.Output(ctx, "rm", "-f", zebraSocket); err != nil {
				return err
			}
		}
		if err := r.launch(ctx, d); err != nil {
			return err
		}
		if d.Name == "zebra" {
			if _, err := r.Output(ctx, "sh", "-c", "until [ -S "+zebraSocket+" ]; do sleep 0.02; done"); err != nil {
				return err
			}
		}
	}
	return nil
}

const zebraSocket = "/run/frr/zserv.api"

// StopBGP signals the daemon that speaks BGP and returns when it has ended; the
// kernel goes on forwarding.
func (r *Router) StopBGP(ctx context.Context, signal syscall.Signal) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	daemons := r.bgpDaemons()
	slices.Reverse(daemons)
	for _, d := range daemons {
		if err := stop(ctx, client, d.Name, signal); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// Logs lists the daemons of the router whose logs there are.
func (r *Router) Logs() (names []string) {
	for _, d := range r.bgpDaemons() {
		names = append(names, d.Name)
	}
	return names
}

func (r *Router) bgpDaemons() []hostinit.Daemon {
	daemon := func(name string, args ...string) hostinit.Daemon {
		return hostinit.Daemon{Name: name, Log: logPath(name), Args: args}
	}
	if r.Daemon == RouterBIRD {
		return []hostinit.Daemon{daemon("bird", "/usr/sbin/bird", "-f", "-c", birdConf, "-s", "/run/bird.ctl")}
	}
	frr := func(name string) hostinit.Daemon {
		return daemon(name, "/usr/lib/frr/"+name, "-u", "frr", "-g", "frr", "--vty_socket", "/run/frr", "-z", zebraSocket,
			"-i", "/run/frr/"+name+".pid", "-f", "/etc/contiv-"+name+".conf", "-A", "127.0.0.1", "-P", "0", "--log", "stdout")
	}
	return []hostinit.Daemon{frr("zebra"), frr("bgpd")}
}

// routerPrograms are what routers of a kind need on the machine.
func routerPrograms(daemon string) []string {
	if daemon == RouterBIRD {
		return []string{"bird"}
	}
	return []string{"vtysh"}
}
