// netmaster is Contiv's controller: it keeps the cluster's networks, tenants, groups and
// addresses, and serves the API. Of several, one leads; the others pass requests on.
package main

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/hostgc"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/netx"
)

// options are the command line (netmaster --help).
type options struct {
	log     cliconf.Log
	network cliconf.Network
	store   cliconf.Store
	member  member
	first   defaultNetwork
	secure  securityOptions

	infra, aciGateway  string
	name               string
	docknetScope       string
	dockerSocket       string
	kubeConfig         string
	external, internal string
	rpc                string
	lease, grace       time.Duration
}

const env = cliconf.Env("CONTIV_NETMASTER_")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := cliconf.Run(ctx, command(), os.Args)
	stop()
	os.Exit(code)
}

func command() *cli.Command {
	o := &options{}
	return &cli.Command{
		Name:     "netmaster",
		Usage:    "Contiv's controller: networks, tenants, groups and addresses of a cluster",
		Commands: []*cli.Command{o.authorityCommand(), o.storeCommand()},
		Flags:    slices.Concat(o.network.Flags(env), o.flags(), o.first.flags(), o.store.Flags(env), o.member.flags(&o.store), o.secure.flags(), o.secure.audit.flags(), o.log.Flags(env)),
		Action: func(ctx context.Context, _ *cli.Command) error {
			log, err := o.log.Open("netmaster", os.Stderr)
			if err != nil {
				return err
			}
			if err := o.validate(ctx); err != nil {
				return err
			}
			return run(ctx, o, log)
		},
	}
}

func (o *options) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "infra", Aliases: []string{"infra-type"}, Category: "network", Value: "default", Destination: &o.infra,
			Sources: env.Var("INFRA"), Usage: "default or aci",
		},
		&cli.StringFlag{
			Name: "aci-gateway", Category: "network", Value: aci.DefaultURL, Destination: &o.aciGateway,
			Sources: env.Var("ACI_GATEWAY"), Usage: "`URL` of the gateway to an ACI fabric; used in fabric mode aci only",
		},
		&cli.StringFlag{
			Name: "name", Aliases: []string{"plugin-name"}, Category: "network", Value: "netplugin", Destination: &o.name,
			Sources: env.Var("PLUGIN_NAME"), Usage: "`name` of the docker network and IPAM driver",
		},
		&cli.StringFlag{
			Name: "docknet-scope", Category: "network", Value: "local", Destination: &o.docknetScope, Sources: env.Var("DOCKNET_SCOPE"),
			Usage: "local: agents create the docker networks of their Engines; global: this netmaster creates them, and Engines up to 20.10 share them through their cluster store (mode docker)",
		},
		&cli.StringFlag{
			Name: "docker-socket", Category: "network", Value: dockerd.DefaultSocket, Destination: &o.dockerSocket, Sources: env.Var("DOCKER_SOCKET"),
			Usage: "`path` of the Docker Engine's socket; used with --docknet-scope global only",
		},
		&cli.StringFlag{
			Name: "external-address", Aliases: []string{"listen-url"}, Category: "control", Value: "0.0.0.0:9999", Destination: &o.external,
			Sources: env.Var("EXTERNAL_ADDRESS"), Usage: "`host:port` on which the API is served",
		},
		&cli.StringFlag{
			Name: "internal-address", Aliases: []string{"control-url"}, Category: "control", Destination: &o.internal,
			Sources: env.Var("INTERNAL_ADDRESS"), Usage: "`ip:port` for agents and other netmasters (default: a local address, the port of --external-address)",
		},
		&cli.StringFlag{
			Name: "rpc-address", Category: "control", Destination: &o.rpc,
			Sources: env.Var("RPC_ADDRESS"), Usage: "`ip:port` for reports of agents (default: the internal address, port 9001)",
		},
		o.kubeFlag(),
		&cli.DurationFlag{
			Name: "dead-host-grace", Category: "control", Value: hostgc.DefaultGrace, Destination: &o.grace,
			Sources: env.Var("DEAD_HOST_GRACE"), Usage: "how long endpoints of a host that is down are kept, at least 1m",
		},
		&cli.DurationFlag{
			Name: "leader-lease", Category: "control", Value: daemon.DefaultLease, Destination: &o.lease,
			Sources: env.Var("LEADER_LEASE"), Usage: "how long after its last lease renewal a leader is replaced, 2s to 5m",
		},
	}
}

// validate checks the options in the documented order.
func (o *options) validate(ctx context.Context) error {
	if err := o.network.Validate(); err != nil {
		return err
	}
	if err := o.store.Validate(); err != nil {
		return err
	}
	if err := o.member.validate(&o.store); err != nil {
		return err
	}
	if err := o.secure.validate(); err != nil {
		return err
	}
	if err := o.checkStoreIsClosed(); err != nil {
		return err
	}
	if err := cliconf.OneOf("--infra", &o.infra, "default", "aci"); err != nil {
		return err
	}
	if _, err := aci.NewClient(o.aciGateway); err != nil {
		return cliconf.Usagef("--aci-gateway: %w", err)
	}
	if err := cliconf.OneOf("--docknet-scope", &o.docknetScope, "local", "global"); err != nil {
		return err
	}
	if o.name == "" {
		return cliconf.Usagef("--name is not set, expected the name of a docker driver")
	}
	if err := o.validateKube(); err != nil {
		return err
	}
	if o.lease < 2*time.Second || o.lease > 5*time.Minute {
		return cliconf.Usagef("--leader-lease %s is not between 2s and 5m", o.lease)
	}
	if o.grace < time.Minute {
		return cliconf.Usagef("--dead-host-grace %s is less than 1m", o.grace)
	}
	if _, err := o.first.network(o.network.NetMode); err != nil {
		return err
	}
	return o.addresses(ctx)
}

func (o *options) addresses(ctx context.Context) error {
	if err := netx.CheckListen(o.external); err != nil {
		return cliconf.Usagef("--external-address: %w", err)
	}
	if o.internal == "" {
		ip, err := netx.DefaultHostIP(ctx)
		if err != nil {
			return cliconf.Usagef("--internal-address is not given and no default was found: %w", err)
		}
		_, port, _ := net.SplitHostPort(o.external)
		o.internal = net.JoinHostPort(ip.String(), port)
	}
	ap, err := netx.ParseListen(o.internal)
	if err != nil {
		return cliconf.Usagef("--internal-address: %w", err)
	}
	if ap.Addr().IsUnspecified() || ap.Addr().IsMulticast() {
		return cliconf.Usagef("--internal-address %q: expected the address of one host", o.internal)
	}
	o.internal = ap.String()
	if o.rpc == "" {
		o.rpc = netip.AddrPortFrom(ap.Addr(), clusterapi.MasterPort).String()
	}
	if _, err := netx.ParseListen(o.rpc); err != nil {
		return cliconf.Usagef("--rpc-address: %w", err)
	}
	return nil
}
