package ovsd

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// The two bridges. Both exist in every mode.
const (
	VLANBridge  = "contivVlanBridge"
	VXLANBridge = "contivVxlanBridge"
)

// Keys in external_ids. Everything the driver creates carries ownerMark, so that Cleanup
// removes exactly that.
const (
	ownerKey     = "contiv-owner"
	ownerMark    = "netplugin"
	endpointKey  = "endpoint-id" // endpoint of a port; also "uplinkPort" and "hostcontivh0"
	tenantKey    = "contiv-tenant"
	networkKey   = "contiv-network"
	containerKey = "contiv-container"
	ifnameKey    = "contiv-ifname"
	netnsKey     = "contiv-netns"
	podKey       = "contiv-pod"
	podUIDKey    = "contiv-pod-uid"
	configKey    = "contiv-cni-config"
	vrfKeyPrefix = "contiv-vrf/" // on the bridge: the number of a tenant's VRF
	roundKey     = "contiv-round"

	// On the bridge: the former value of a kernel setting.
	settingKeyPrefix = "contiv-setting/"
	uplinkEndpoint   = "uplinkPort"
)

// tunnelName is the one flow-based VXLAN port.
const tunnelName = "contivvx0"

// OpenFlow port numbers the driver requests. Ports of containers request the number in
// their name, below all of these, so that numbers survive a restart of the switch.
const (
	tunnelOFPort      = 65000
	dnsOFPort         = 65001
	routerOFPort      = 65002
	hostOFPort        = 65003
	firstUplinkOFPort = 65010
	lastPortNumber    = ofnet.LastMeteredPort
)

// Config configures the driver.
type Config struct {
	HostLabel string
	OVSDB     string // target of the database, default unix:/var/run/openvswitch/db.sock
	Datapath  string // auto | system | netdev
	VTEP      netip.Addr
	CtrlIP    netip.Addr // address at which other daemons reach this host
	VXLANPort uint16     // UDP
	Uplinks   []string   // interfaces of the VLAN bridge
	// Takeover allows uplinks to carry addresses and routes that the host needs: they
	// move to an internal port of the switch, and back at Cleanup, or at a start without
	// Takeover.
	Takeover bool
	// ControlPorts are the ports of the control plane, which containers cannot reach on
	// any host; TunnelPorts are UDP ports that containers cannot reach at any outside
	// address.
	ControlPorts []ofnet.PortRange
	TunnelPorts  []uint16
	// AllowSpoofing lets containers send from addresses that are not theirs.
	AllowSpoofing bool
	// ConnectionRate limits the new connections of a container per second,
	// ConnectionLimit the tracked connections of a tenant in each zone; 0 means no
	// limit.
	ConnectionRate, ConnectionLimit uint32
	// EndpointPolicies adds the tables for endpoint policies; without it they are
	// ignored.
	EndpointPolicies bool
	// FlowLog is what the switch prepares for a log of connections; Denied is then called with
	// packets that it denies, and must not block.
	FlowLog ofnet.FlowLog
	Denied  func(drivers.Denied)
	// Sources are those that declare objects besides the store.
	Sources []drivers.Source
	// NameServer receives the name queries of containers; nil: queries are not
	// intercepted.
	NameServer drivers.NameServer
	DNSRate    uint32 // queries per second of a container by UDP; 0 means 1000
	Log        logrus.FieldLogger
}

func (c *Config) setDefaults() error {
	if c.OVSDB == "" {
		c.OVSDB = "unix:/var/run/openvswitch/db.sock"
	}
	if c.VXLANPort == 0 {
		c.VXLANPort = 4789
	}
	if c.DNSRate == 0 {
		c.DNSRate = dnsRate
	}
	if c.Datapath == "" {
		c.Datapath = "auto"
	}
	switch c.Datapath {
	case "auto", "system", "netdev":
	default:
		return fmt.Errorf("ovs datapath %q: expected auto, system or netdev", c.Datapath)
	}
	if c.Log == nil {
		c.Log = logrus.StandardLogger()
	}
	return nil
}

// mgmtTarget is the bridge's management socket, next to that of the database. Using it
// needs no Controller row; adding or removing one would flush all flows.
func (c *Config) mgmtTarget(bridge string) string {
	return "unix:" + filepath.Join(c.runDir(), bridge+".mgmt")
}

// runDir is where the switch has its sockets.
func (c *Config) runDir() string {
	if path, ok := strings.CutPrefix(c.OVSDB, "unix:"); ok {
		return filepath.Dir(path)
	}
	return "/var/run/openvswitch"
}

// dnsNamespace is the file on which the DNS namespace is mounted, next to the sockets of
// the switch it belongs to.
func (c *Config) dnsNamespace() string { return filepath.Join(c.runDir(), "contiv-dns.netns") }
