package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/contiv/netplugin/test/lab/hostinit"
)

// privateDirs are the directories that each host has on disk, below
// hosts/<host>/fs of the lab. What else it changes in /etc, /var and /opt is kept in
// memory and lost with the host.
func privateDirs() []string {
	return []string{
		"/var/log", "/var/lib/contiv", "/var/lib/etcd", "/var/lib/consul", "/var/lib/docker", "/var/lib/containerd",
		"/var/lib/cni", "/var/lib/kubelet", "/var/contiv", "/etc/openvswitch", "/etc/contiv",
		"/etc/cni", "/etc/docker", "/opt/cni",
	}
}

// file is where the lab keeps a file of one of the host's privateDirs.
func (h *Host) file(path string) string { return h.lab.path("hosts", h.Name, "fs", path) }

// LogFile is where a daemon of the host writes, as this machine sees it.
func (h *Host) LogFile(daemon string) string { return h.file(logPath(daemon)) }

func logPath(daemon string) string {
	switch daemon {
	case ovs, vswitchd, ovsdbServer:
		if daemon == ovs {
			daemon = vswitchd
		}
		return "/var/log/openvswitch/" + daemon + ".log"
	case "contivk8s":
		return "/var/log/contivk8s.log"
	}
	return "/var/log/contiv/" + daemon + ".log"
}

// startHost brings one host up: init, cables, Open vSwitch, daemons.
func (l *Lab) startHost(ctx context.Context, h *Host) error {
	if err := l.boot(ctx, h); err != nil {
		return err
	}
	for _, d := range h.Daemons() {
		if d == netplugin {
			if err := h.giveToken(ctx); err != nil {
				return err
			}
		}
		if err := h.StartDaemon(ctx, d); err != nil {
			return err
		}
		if d == netmaster {
			h.started.Do(func() { close(h.up) })
		}
	}
	if l.cfg.Managed {
		return h.installPlugin(ctx)
	}
	return nil
}

// boot starts a host's init and connects its links; it starts no daemon.
func (l *Lab) boot(ctx context.Context, h *Host) (err error) {
	config, err := l.hostConfig(h)
	if err != nil {
		return err
	}
	if h.pid, err = l.startInit(ctx, h.Name, config); err != nil {
		return err
	}
	if err := l.plug(h); err != nil {
		return err
	}
	return h.configure()
}

func (l *Lab) hostConfig(h *Host) (hostinit.Config, error) {
	config := hostinit.Config{
		Hostname: h.Name,
		Overlays: []string{"/etc", "/var", "/opt"},
		Files: map[string]string{
			"/etc/hosts":       l.etcHosts(),
			"/etc/hostname":    h.Name + "\n",
			"/etc/resolv.conf": resolvConf,
		},
		Sysctls: []hostinit.Sysctl{
			// eth1 is a port of br-ext: it must not answer ARP for br-ext's address.
			{Path: "net/ipv4/conf/all/arp_ignore", Value: "1"},
			{Path: "net/ipv4/conf/default/arp_ignore", Value: "1"},
			{Path: "net/ipv4/ip_forward", Value: "0"},
			{Path: "net/ipv4/ping_group_range", Value: "0 2147483647"},
			{Path: "net/bridge/bridge-nf-call-iptables", Value: "0"},
			{Path: "net/bridge/bridge-nf-call-ip6tables", Value: "0"},
		},
		Addresses: map[string]netip.Prefix{l.cfg.TunnelInterface(): hostPrefix(networks()[1], h.Number)},
	}
	if err := os.MkdirAll(l.cfg.Bin, 0o755); err != nil {
		return config, err
	}
	config.Binds = append(config.Binds, hostinit.Bind{Source: l.cfg.Bin, Target: "/opt/contiv/bin", ReadOnly: true})
	if l.cfg.OVS != "" {
		config.Binds = append(config.Binds, hostinit.Bind{Source: l.cfg.OVS, Target: hostinit.OVSDir, ReadOnly: true})
	}
	for _, dir := range privateDirs() {
		source := h.file(dir)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return config, err
		}
		config.Binds = append(config.Binds, hostinit.Bind{Source: source, Target: dir})
	}
	for _, dir := range []string{"/var/log/openvswitch", "/var/log/contiv"} {
		if err := os.MkdirAll(h.file(dir), 0o755); err != nil {
			return config, err
		}
	}
	if l.cfg.Kubernetes {
		if err := h.addKubernetes(&config, l.keys); err != nil {
			return config, err
		}
	}
	return config, h.linkCNI()
}

// resolvConf names a server that does not exist. Containers of an Engine need an entry:
// the Engine forwards what it cannot answer itself, and the agent answers these queries.
const resolvConf = "# a lab has no name servers\nnameserver 192.168.2.1\noptions timeout:1 attempts:1\n"

// etcHosts gives every master the name netmaster, so that a client that tries all
// addresses of a name finds one that is alive.
func (l *Lab) etcHosts() string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
	for _, h := range l.hosts {
		fmt.Fprintf(&b, "%s %s\n", h.ControlIP(), h.Name)
	}
	for _, h := range l.Masters() {
		fmt.Fprintf(&b, "%s netmaster\n", h.ControlIP())
	}
	return b.String()
}

func hostPrefix(n network, host int) netip.Prefix {
	return netip.PrefixFrom(address(n.prefix, host), n.prefix.Bits())
}
