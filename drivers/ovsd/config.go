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

// The two bridges; both exist whatever the mode.
const (
	VLANBridge  = "contivVlanBridge"
	VXLANBridge = "contivVxlanBridge"
)

// Marks in external_ids. Everything the driver makes carries ownerMark, so that
// Cleanup removes exactly that.
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

	// On the bridge: what a kernel setting was before.
	settingKeyPrefix = "contiv-setting/"
	uplinkEndpoint   = "uplinkPort"
)

// tunnelName is the one flow-based VXLAN port.
const tunnelName = "contivvx0"

// OpenFlow port numbers the driver asks for. Container ports ask for the number in
// their name, below all of these, so that numbers survive a restart of the switch.
const (
	tunnelOFPort      = 65000
	dnsOFPort         = 65001
	routerOFPort      = 65002
	hostOFPort        = 65003
	firstUplinkOFPort = 65010
	lastPortNumber    = ofnet.LastMeteredPort
)

// Config says what the driver works with.
type Config struct {
	HostLabel string
	OVSDB     string // target of the database, default unix:/var/run/openvswitch/db.sock
	Datapath  string // auto | system | netdev
	VTEP      netip.Addr
	CtrlIP    netip.Addr // what other daemons reach this host under
	VXLANPort uint16     // UDP
	Uplinks   []string   // interfaces of the VLAN bridge
	// Takeover lets uplinks carry addresses and routes that the host needs: they move to a
	// port of the switch, and back at Cleanup, or at a start without it.
	Takeover bool
	// ControlPorts are the ports of the control plane that containers do not reach on any
	// host; TunnelPorts the UDP ports that they reach on no address outside.
	ControlPorts []ofnet.PortRange
	TunnelPorts  []uint16
	// AllowSpoofing lets containers send under addresses that are not theirs.
	AllowSpoofing bool
	// ConnectionRate bounds the tracked connections that a container may begin per second,
	// ConnectionLimit those that the switch tracks for a tenant in each zone; 0: no bound.
	ConnectionRate, ConnectionLimit uint32
	// EndpointPolicies adds the tables of endpoint policies; without it they are ignored.
	EndpointPolicies bool
	// Sources declare objects besides the store, and say when they are synced.
	Sources []drivers.Source
	// NameServer is given what containers ask name servers; nil: they ask whom they will.
	NameServer drivers.NameServer
	DNSRate    uint32 // queries per second of a container by UDP; 1000 when 0
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

// mgmtTarget is the bridge's management socket, which Open vSwitch keeps beside the
// database's. It needs no Controller row, whose coming and going would flush all flows.
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

// dnsNamespace is what the namespace for name queries is mounted on: beside the sockets
// of the switch that it belongs to.
func (c *Config) dnsNamespace() string { return filepath.Join(c.runDir(), "contiv-dns.netns") }
