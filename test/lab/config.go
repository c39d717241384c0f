package lab

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/tlsport"
)

// MaxHosts bounds a lab: host n has address .9+n in every underlay network.
const MaxHosts = 99

// Config describes a lab. The zero value of a field means its default.
type Config struct {
	Dir  string `json:"-"`             // where the lab keeps its files; must not hold anything else
	Bin  string `json:"bin"`           // directory with the binaries of make build
	Init string `json:"init"`          // program that calls Play first; default Bin/contiv-lab
	OVS  string `json:"ovs,omitempty"` // directory with the programs of another Open vSwitch (scripts/ovs); default the machine's
	// Datapath of the hosts' Open vSwitch: DatapathUser (default) or DatapathKernel, for which the
	// machine needs the module openvswitch.
	Datapath string `json:"datapath"`
	Hosts    int    `json:"hosts"`   // 1–99, default 3
	Masters  int    `json:"masters"` // hosts 1…Masters run netmaster; default 1
	NetMode  string `json:"netmode"` // vxlan (default) | vlan
	FwdMode  string `json:"fwdmode"` // routing | bridge; default routing with vxlan, bridge with vlan
	Store    string `json:"store"`   // embedded (default): etcd in netmaster | etcd: Debian's | consul, both on the masters' hosts
	Mode     string `json:"mode"`    // plugin mode of the daemons; default kubernetes, with an Engine docker
	Docker   string `json:"docker"`  // Docker Engine of every host: none (default), 20 (the distribution's) or 28 (of scripts/dockerd)
	DNS      string `json:"dns"`     // --dns of netplugin; default its own
	// Kubernetes makes the hosts nodes of a cluster, with its control plane on host1.
	Kubernetes bool `json:"kubernetes,omitempty"`
	// Containerd says which one the nodes of the cluster have, host by host: 1 (the
	// distribution's, default) or 2 (of scripts/containerd). The last entry applies to all further hosts.
	Containerd []string `json:"containerd,omitempty"`
	// ServiceProxy is --service-proxy of the agents of a cluster; default full, as no node
	// runs kube-proxy.
	ServiceProxy string `json:"serviceProxy,omitempty"`
	// Tenancy is --tenancy of the agents of a cluster; default its own.
	Tenancy string `json:"tenancy,omitempty"`
	// ClusterDNS makes KubeDNS the name server of pods; the caller has to run one there.
	ClusterDNS bool `json:"clusterDNS,omitempty"`
	// SharedDocker makes the Engines, of version 20, share networks through the store, which
	// must be etcd.
	SharedDocker bool `json:"sharedDocker,omitempty"`
	// Relay puts netplugin docker-relay between the Engines and the agents.
	Relay bool `json:"relay,omitempty"`
	// Managed makes the Engines run the agents, as managed plugins.
	Managed bool `json:"managed,omitempty"`
	// Takeover makes the interface of the control network an uplink too, as on hosts that
	// have only one interface; with netmode vlan.
	Takeover bool `json:"takeover,omitempty"`
	// MasterFlags are more flags of netmaster, AgentFlags of netplugin.
	MasterFlags []string `json:"masterFlags,omitempty"`
	AgentFlags  []string `json:"agentFlags,omitempty"`
	// Mesos makes netplugin serve Mesos in addition to its mode.
	Mesos bool `json:"mesos,omitempty"`
	// Bare brings up hosts with Open vSwitch only; with Kubernetes also a cluster that has
	// no network yet, as kubeadm leaves it, and a store if it is a separate one.
	Bare bool `json:"bare,omitempty"`
	// Routers are the routers of the physical network, each named by its BGP daemon: frr or bird.
	Routers []string `json:"routers,omitempty"`
	// BGPPassword is the TCP MD5 password of the routers' sessions (RFC 2385); "" for none.
	BGPPassword string `json:"bgpPassword,omitempty"`
	// BGPTTLSecurity are the numbers of hosts whose sessions the routers bind to the link
	// (RFC 5082).
	BGPTTLSecurity []int `json:"bgpTTLSecurity,omitempty"`
	// TLS is --tls of the daemons: off (default), accept or require.
	TLS tlsport.Mode `json:"tls,omitempty"`
	// LogLevel of netmaster and netplugin; default INFO.
	LogLevel string `json:"logLevel"`
	// Timeout bounds the wait for all daemons together; default one minute, five with Kubernetes or managed plugins.
	Timeout time.Duration `json:"-"`
	// Progress receives one line for each step; nil for none.
	Progress io.Writer `json:"-"`
}

// Values of Config.ServiceProxy: who translates Services.
const (
	ProxyFull = "full" // the agents
	ProxyPods = "pods" // the agents lead pods only
)

// Values of Config.Datapath, which are those of netplugin --ovs-datapath.
const (
	DatapathUser   = "netdev"
	DatapathKernel = "system"
)

// Values of Config.Store.
const (
	StoreEmbedded = "embedded"
	StoreEtcd     = "etcd"
	StoreConsul   = "consul"
)

// withDefaults sets defaults and validates.
func (c Config) withDefaults() (Config, error) {
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&c.NetMode, "vxlan")
	if c.NetMode == "vlan" {
		set(&c.FwdMode, "bridge")
	}
	set(&c.FwdMode, "routing")
	set(&c.Store, StoreEmbedded)
	set(&c.Datapath, DatapathUser)
	if c.Docker != DockerNone {
		set(&c.Mode, "docker")
	}
	set(&c.Mode, "kubernetes")
	if c.Kubernetes {
		set(&c.ServiceProxy, ProxyFull)
	}
	set(&c.LogLevel, "INFO")
	if c.TLS == "" {
		c.TLS = tlsport.Off
	}
	if c.Hosts == 0 {
		c.Hosts = 3
	}
	if c.Masters == 0 {
		c.Masters = 1
	}
	if c.Timeout == 0 {
		c.Timeout = c.DefaultTimeout()
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	invalid := func(format string, args ...any) (Config, error) { return c, errs.New(errs.Invalid, format, args...) }
	switch {
	case c.Hosts < 1 || c.Hosts > MaxHosts:
		return invalid("hosts %d: expected 1 to %d", c.Hosts, MaxHosts)
	case c.Masters < 1 || c.Masters > c.Hosts:
		return invalid("masters %d: expected 1 to %d, the number of hosts", c.Masters, c.Hosts)
	case c.NetMode != "vxlan" && c.NetMode != "vlan":
		return invalid("netmode %q: expected vxlan or vlan", c.NetMode)
	case c.FwdMode != "routing" && c.FwdMode != "bridge":
		return invalid("fwdmode %q: expected routing or bridge", c.FwdMode)
	case c.NetMode == "vxlan" && c.FwdMode == "bridge":
		return invalid("fwdmode bridge cannot be used with netmode vxlan: expected routing")
	case c.Store != StoreEmbedded && c.Store != StoreEtcd && c.Store != StoreConsul:
		return invalid("store %q: expected %s, %s or %s", c.Store, StoreEmbedded, StoreEtcd, StoreConsul)
	case c.Datapath != DatapathUser && c.Datapath != DatapathKernel:
		return invalid("datapath %q: expected %s or %s", c.Datapath, DatapathUser, DatapathKernel)
	case c.Docker != DockerNone && c.Docker != DockerPacked && c.Docker != DockerBuilt:
		return invalid("docker %q: expected %s or %s", c.Docker, DockerPacked, DockerBuilt)
	case len(c.Routers) > MaxRouters:
		return invalid("%d routers: expected at most %d", len(c.Routers), MaxRouters)
	case slices.ContainsFunc(c.Routers, func(r string) bool { return r != RouterFRR && r != RouterBIRD }):
		return invalid("routers %v: expected %s or %s", c.Routers, RouterFRR, RouterBIRD)
	case c.Kubernetes && c.Mode != "kubernetes":
		return invalid("a cluster of Kubernetes needs Contiv in mode kubernetes, and no Docker Engine")
	case slices.ContainsFunc(c.Containerd, func(v string) bool { return v != ContainerdPacked && v != ContainerdBuilt }):
		return invalid("containerd %v: expected %s or %s", c.Containerd, ContainerdPacked, ContainerdBuilt)
	case len(c.Containerd) > 0 && !c.Kubernetes:
		return invalid("containerd is for a cluster of Kubernetes")
	case c.ServiceProxy != "" && !c.Kubernetes:
		return invalid("service proxy %s is for a cluster of Kubernetes", c.ServiceProxy)
	case c.Kubernetes && c.ServiceProxy != ProxyFull && c.ServiceProxy != ProxyPods:
		return invalid("service proxy %q: expected %s or %s", c.ServiceProxy, ProxyFull, ProxyPods)
	case c.SharedDocker && (c.Docker != DockerPacked || c.Store != StoreEtcd):
		return invalid("shared docker networks need docker %s and store %s", DockerPacked, StoreEtcd)
	case c.Managed && (c.Docker == DockerNone || c.Relay || c.Mode != "docker" && c.Mode != "swarm-mode"):
		return invalid("managed plugins need a Docker Engine, mode docker or swarm-mode, and no relay")
	case c.Takeover && c.NetMode != "vlan":
		return invalid("takeover needs netmode vlan")
	case c.secured() && (c.Managed || c.Bare):
		return invalid("tls %s is not for managed plugins or bare hosts", c.TLS)
	case c.Dir == "":
		return invalid("the lab needs a directory")
	}
	_, err := tlsport.ParseMode(string(c.TLS))
	if err != nil {
		return c, err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, err
	}
	if c.Bin, err = filepath.Abs(c.Bin); err != nil {
		return c, err
	}
	set(&c.Init, filepath.Join(c.Bin, "contiv-lab"))
	if c.Init, err = filepath.Abs(c.Init); err != nil {
		return c, err
	}
	return c, nil
}

// DefaultTimeout is c.Timeout if none is chosen.
func (c Config) DefaultTimeout() time.Duration {
	if c.Kubernetes || c.Managed {
		return 5 * time.Minute
	}
	return time.Minute
}

// findPrograms fails early, and says what to install, when a program is missing.
func (c Config) findPrograms() error {
	if _, err := os.Stat(c.Init); err != nil {
		return errs.New(errs.NotFound, "program %s is missing: run make build", c.Init)
	}
	if !c.Bare {
		for _, name := range []string{"netmaster", "netplugin", "netctl", contivk8s} {
			if _, err := os.Stat(filepath.Join(c.Bin, name)); err != nil {
				return errs.New(errs.NotFound, "program %s is missing: run make build", filepath.Join(c.Bin, name))
			}
		}
	}
	needed := []string{"ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovsdb-tool", "ethtool"}
	for _, r := range c.Routers {
		needed = append(needed, routerPrograms(r)...)
	}
	if c.Store == StoreEtcd {
		needed = append(needed, "etcd")
	}
	if c.Store == StoreConsul {
		binary, err := consulBinary()
		if err != nil {
			return err
		}
		if _, err := os.Stat(binary); err != nil {
			return errs.New(errs.NotFound, "program %s is missing: run make consul", binary)
		}
	}
	if _, err := os.Stat("/sys/module/openvswitch"); err != nil && c.Datapath == DatapathKernel {
		return errs.New(errs.NotFound, "this kernel has no module openvswitch loaded, which datapath %s needs: run modprobe openvswitch, or use make vm and scripts/vm", c.Datapath)
	}
	if err := findDocker(c.Docker); err != nil {
		return err
	}
	if c.Kubernetes {
		if err := findKubernetes(); err != nil {
			return err
		}
		for _, version := range c.Containerd {
			if err := findContainerd(version); err != nil {
				return err
			}
		}
	}
	for _, name := range needed {
		if !inHostPath(name) {
			return errs.New(errs.NotFound, "program %s is missing: run scripts/deps", name)
		}
	}
	return nil
}

// Underlay networks. Host n has the address .9+n in those that are routed.
type network struct {
	bridge string // in the underlay's namespace
	link   string // in the host's
	prefix netip.Prefix
}

func networks() []network {
	return []network{
		{bridge: "control", link: "eth0", prefix: netip.MustParsePrefix("192.168.2.0/24")},
		{bridge: "vtep", link: "eth1", prefix: netip.MustParsePrefix("192.168.60.0/24")},
		{bridge: "trunk", link: "eth2"},
	}
}

// Networks names the underlay networks, for Partition.
func Networks() []string {
	var names []string
	for _, n := range networks() {
		names = append(names, n.bridge)
	}
	return names
}

func address(prefix netip.Prefix, host int) netip.Addr {
	a := prefix.Addr().As4()
	a[3] = byte(9 + host)
	return netip.AddrFrom4(a)
}

// HostName is the name of the n-th host, counted from 1.
func HostName(n int) string { return fmt.Sprintf("host%d", n) }

// ControlIP is the address of the n-th host in the control network, where its
// daemons listen and its store is.
func ControlIP(n int) netip.Addr { return address(networks()[0].prefix, n) }

// ControlIP6 is the IPv6 address of the n-th host in the control network of a lab with
// Kubernetes.
func ControlIP6(n int) netip.Addr {
	a := controlPrefix6.Addr().As16()
	a[15] = byte(9 + n)
	return netip.AddrFrom16(a)
}

// controlPrefix6 is the control network of a cluster, for IPv6.
var controlPrefix6 = netip.MustParsePrefix("fd00:192:168:2::/64")

// VTEPIP is the tunnel address of the n-th host.
func VTEPIP(n int) netip.Addr { return address(networks()[1].prefix, n) }
