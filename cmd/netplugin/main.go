// netplugin is Contiv's agent: it realises networks and endpoints on one host.
package main

import (
	"context"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/netx"
)

// options are the command line (netplugin --help).
type options struct {
	log     cliconf.Log
	network cliconf.Network
	store   cliconf.Store
	secure  securityOptions
	docker  docker
	names   nameOptions
	kube    kubeOptions
	mesos   mesosOptions
	reach   reachOptions
	flows   flowOptions

	host, vtep, vtepNetwork      string
	ctrl, uplinkList             string
	vxlanPort                    int
	datapath, ovsdb, restAddress string
	cniSocket                    string
	allowSpoofing, takeover      bool

	connectionRate, connectionLimit int

	vtepIP, ctrlIP netip.Addr
	uplinks        []string
}

const env = cliconf.Env("CONTIV_NETPLUGIN_")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := cliconf.Run(ctx, command(), os.Args)
	stop()
	os.Exit(code)
}

func command() *cli.Command {
	o := &options{}
	return &cli.Command{
		Name:  "netplugin",
		Usage: "Contiv's agent: networks and endpoints of one host",
		Flags: slices.Concat(o.log.Flags(env), o.network.Flags(env), o.store.Flags(env), o.secure.flags(), o.flags(), o.reach.flags(), o.flows.flags(), o.docker.flags(), o.names.flags(), o.kube.flags(), o.mesos.flags()),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			log, err := o.log.Open("netplugin", os.Stderr)
			if err != nil {
				return err
			}
			if err := o.validate(ctx, cmd); err != nil {
				return err
			}
			return run(ctx, o, log)
		},
		Commands: []*cli.Command{
			relayCommand(),
			{Name: "preflight", Usage: "check whether this host can run netplugin", Flags: o.hostFlags(), Action: func(ctx context.Context, cmd *cli.Command) error {
				return preflight(ctx, o, cmd.Root().Writer)
			}},
			{Name: "cleanup", Usage: "remove everything netplugin created on this host", Flags: slices.Concat(o.hostFlags(), o.docker.flags(), o.kube.nodeFlags(), []cli.Flag{
				&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be removed"},
			}), Action: func(ctx context.Context, cmd *cli.Command) error {
				return cleanup(ctx, o, cmd.Bool("dry-run"), cmd.Root().Writer)
			}},
		},
	}
}

func (o *options) flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{
			Name: "host", Aliases: []string{"host-label"}, Destination: &o.host, Sources: env.Var("HOST"),
			Usage: "`label` of this host (default: the host's name)",
		},
		&cli.StringFlag{
			Name: "rest-address", Value: ":9090", Destination: &o.restAddress, Sources: env.Var("REST_ADDRESS"),
			Usage: "`host:port` of the REST API",
		},
		&cli.StringFlag{
			Name: "cni-socket", Value: "/run/contiv/contiv-cni.sock", Destination: &o.cniSocket, Sources: env.Var("CNI_SOCKET"),
			Usage: "`path` of the socket for contivk8s (mode kubernetes and test)",
		},
		&cli.BoolFlag{
			Name: "allow-spoofing", Destination: &o.allowSpoofing, Sources: env.Var("ALLOW_SPOOFING"),
			Usage: "let containers send with any source address, and act as routers",
		},
		&cli.IntFlag{
			Name: "connection-rate", Value: 5000, Destination: &o.connectionRate, Sources: env.Var("CONNECTION_RATE"),
			Usage: "new connections per `second` and container, where the switch tracks them; 0: no limit",
		},
		&cli.IntFlag{
			Name: "connection-limit", Value: 400000, Destination: &o.connectionLimit, Sources: env.Var("CONNECTION_LIMIT"),
			Usage: "tracked `connections` per tenant, separately for rules, services and the default route; 0: no limit",
		},
	}, o.hostFlags()...)
}

// hostFlags are the options preflight and cleanup need as well.
func (o *options) hostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "ctrl-ip", Destination: &o.ctrl, Sources: env.Var("CONTROL_IP"),
			Usage: "`address` of this host for other daemons (default: a local address)",
		},
		&cli.StringFlag{
			Name: "vtep-ip", Destination: &o.vtep, Sources: env.Var("VTEP_IP"),
			Usage: "tunnel `address` of this host (default: a local address)",
		},
		&cli.StringFlag{
			Name: "vtep-network", Destination: &o.vtepNetwork, Sources: env.Var("VTEP_NETWORK"),
			Usage: "`subnet` of the tunnel addresses, the same for all hosts; takes precedence over --vtep-ip",
		},
		&cli.StringFlag{
			Name: "vlan-uplinks", Aliases: []string{"vlan-if"}, Destination: &o.uplinkList, Sources: env.Var("VLAN_UPLINKS"),
			Usage: "comma-separated `list` of interfaces to the VLAN network",
		},
		&cli.BoolFlag{
			Name: "takeover", Destination: &o.takeover, Sources: env.Var("TAKEOVER"),
			Usage: "accept uplinks with addresses and routes of this host: move these to contivUplink, and back at cleanup",
		},
		&cli.IntFlag{
			Name: "vxlan-port", Value: 4789, Destination: &o.vxlanPort, Sources: env.Var("VXLAN_PORT"),
			Usage: "UDP `port` of VXLAN",
		},
		&cli.StringFlag{
			Name: "ovs-datapath", Value: "auto", Destination: &o.datapath, Sources: env.Var("OVS_DATAPATH"),
			Usage: "auto, system (kernel) or netdev (userspace)",
		},
		&cli.StringFlag{
			Name: "ovsdb", Value: "unix:/var/run/openvswitch/db.sock", Destination: &o.ovsdb, Sources: env.Var("OVSDB"),
			Usage: "Open vSwitch `database`, unix:PATH or tcp:HOST:PORT",
		},
	}
}

// validate checks the options in the documented order.
func (o *options) validate(ctx context.Context, _ *cli.Command) error {
	if err := o.network.Validate(); err != nil {
		return err
	}
	if err := o.store.Validate(); err != nil {
		return err
	}
	if err := o.secure.validate(&o.store); err != nil {
		return err
	}
	if err := o.docker.validate(); err != nil {
		return err
	}
	if o.host == "" {
		name, err := os.Hostname()
		if err != nil || name == "" {
			return cliconf.Usagef("--host: the host name is unknown, expected a label")
		}
		o.host = name
	}
	if strings.ContainsAny(o.host, "/ \t\n") {
		return cliconf.Usagef("--host %q: expected a label without slashes and spaces", o.host)
	}
	if err := o.validateHost(ctx); err != nil {
		return err
	}
	const most = 1 << 24
	if o.connectionRate < 0 || o.connectionRate > most {
		return cliconf.Usagef("--connection-rate %d: expected 0 to %d", o.connectionRate, most)
	}
	if o.connectionLimit < 0 || o.connectionLimit > most {
		return cliconf.Usagef("--connection-limit %d: expected 0 to %d", o.connectionLimit, most)
	}
	if err := o.names.validate(); err != nil {
		return err
	}
	if err := o.kube.validate(); err != nil {
		return err
	}
	if err := o.flows.validate(); err != nil {
		return err
	}
	if _, err := o.containerReach(""); err != nil {
		return err
	}
	if o.network.NetMode == "vlan" && len(o.uplinks) == 0 {
		return cliconf.Usagef("vlan-uplinks must be set when using VLAN mode")
	}
	return nil
}

func (o *options) validateHost(ctx context.Context) (err error) {
	if o.ctrlIP, err = localAddress(ctx, "--ctrl-ip", o.ctrl); err != nil {
		return err
	}
	if o.vtepIP, err = tunnelAddress(ctx, o.vtepNetwork, o.vtep); err != nil {
		return err
	}
	if o.vxlanPort < 1 || o.vxlanPort > 65535 {
		return cliconf.Usagef("--vxlan-port %d: expected 1 to 65535", o.vxlanPort)
	}
	for name := range strings.SplitSeq(o.uplinkList, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(o.uplinks, name) {
			o.uplinks = append(o.uplinks, name)
		}
	}
	return cliconf.OneOf("--ovs-datapath", &o.datapath, "auto", "system", "netdev")
}

// tunnelAddress is the address this host has in a network, else the one given.
func tunnelAddress(ctx context.Context, network, address string) (netip.Addr, error) {
	if network == "" {
		return localAddress(ctx, "--vtep-ip", address)
	}
	subnet, err := netip.ParsePrefix(network)
	if err != nil {
		return netip.Addr{}, cliconf.Usagef("--vtep-network %q: expected a subnet such as 192.168.60.0/24", network)
	}
	local, err := netx.LocalAddresses()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range local {
		if subnet.Contains(a.Addr) {
			return a.Addr, nil
		}
	}
	return netip.Addr{}, cliconf.Usagef("--vtep-network %s: this host has no address in it", network)
}

func localAddress(ctx context.Context, flag, value string) (netip.Addr, error) {
	if value == "" {
		a, err := netx.DefaultHostIP(ctx)
		if err != nil {
			return a, cliconf.Usagef("%s is not given and no default address was found: %w", flag, err)
		}
		return a, nil
	}
	a, err := netip.ParseAddr(value)
	if err != nil || a.IsUnspecified() || a.IsMulticast() {
		return a, cliconf.Usagef("%s %q: expected the address of this host", flag, value)
	}
	return a.Unmap(), nil
}
