package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/tlsport"
)

const defaultDir = "/run/contiv-lab"

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func command(bin string) *cli.Command {
	commands := []*cli.Command{
		upCommand(bin), attachCommand(), detachCommand(), execCommand(), netctlCommand(),
		restartCommand(), stopCommand(), startCommand(), partitionCommand(), healCommand(),
		logsCommand(), statusCommand(), pageCommand(), downCommand(),
	}
	onUsageError := func(_ context.Context, _ *cli.Command, err error, _ bool) error { return usageError{err} }
	for _, c := range commands {
		c.OnUsageError = onUsageError
	}
	return &cli.Command{
		Name:  "contiv-lab",
		Usage: "a cluster of hosts on this machine: namespaces, each with its own Open vSwitch and the real daemons",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: defaultDir, Usage: "the lab's directory; every directory is a lab of its own"},
		},
		Commands:        commands,
		OnUsageError:    onUsageError,
		HideHelpCommand: true,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {}, // main reports
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return usagef("unknown command %q: see contiv-lab --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
}

// positional returns exactly the arguments named.
func positional(c *cli.Command, names ...string) ([]string, error) {
	got := c.Args().Slice()
	if len(got) != len(names) {
		return nil, usagef("%s: expected arguments %s, got %d", c.Name, strings.Join(names, " "), len(got))
	}
	return got, nil
}

// action wraps a command on a lab that is up.
func action(names []string, f func(context.Context, *lab.Lab, *cli.Command, []string) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		args, err := positional(c, names...)
		if err != nil {
			return err
		}
		l, err := lab.Open(c.String("dir"))
		if err != nil {
			return err
		}
		return f(ctx, l, c, args)
	}
}

func upCommand(bin string) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "bring a lab up and wait until it is ready",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "hosts", Value: 3, Usage: fmt.Sprintf("number of hosts, 1 to %d", lab.MaxHosts)},
			&cli.IntFlag{Name: "masters", Value: 1, Usage: "number of hosts that run netmaster, from host1 on"},
			&cli.StringFlag{Name: "netmode", Value: "vxlan", Usage: "vxlan or vlan"},
			&cli.StringFlag{Name: "fwdmode", Usage: "routing or bridge; by default routing for vxlan, bridge for vlan"},
			&cli.StringFlag{Name: "datapath", Value: lab.DatapathUser, Usage: "of Open vSwitch: netdev (userspace), or system (the kernel's), for which the kernel must have the module openvswitch loaded"},
			&cli.StringFlag{Name: "dns", Usage: "on, off or auto: whether netplugin answers name queries; by default as it does by itself"},
			&cli.StringFlag{Name: "store", Value: lab.StoreEmbedded, Usage: "embedded, or etcd or consul for a separate one"},
			&cli.StringFlag{Name: "docker", Usage: "a Docker Engine on every host: 20 (the distribution's) or 28 (run make dockerd first)"},
			&cli.BoolFlag{Name: "managed", Usage: "with --docker: the Engines run netplugin as a managed plugin"},
			&cli.StringFlag{Name: "mode", Usage: "plugin mode of the daemons: kubernetes, docker or swarm-mode; by default docker with --docker, else kubernetes"},
			&cli.StringFlag{Name: "bin", Value: bin, Usage: "directory of the binaries"},
			&cli.StringFlag{Name: "log-level", Value: "INFO", Usage: "of netmaster and netplugin"},
			&cli.BoolFlag{Name: "kubernetes", Usage: "make the hosts a cluster of Kubernetes, with its control plane on host1 (run make kubernetes first)"},
			&cli.StringSliceFlag{Name: "containerd", Usage: "containerd of the cluster's nodes, one for each or for all: 1 (the distribution's) or 2 (run make containerd first)"},
			&cli.StringFlag{Name: "service-proxy", Usage: "who load-balances Services for nodes and external clients: full (Contiv, the default) or pods (nobody: Contiv handles pods only, and there is no kube-proxy)"},
			&cli.StringSliceFlag{Name: "routers", Usage: "routers of the physical network, each by its BGP daemon: frr or bird"},
			&cli.BoolFlag{Name: "bare", Usage: "hosts with Open vSwitch only, no Contiv; with --kubernetes a cluster without a network"},
			&cli.StringFlag{Name: "tls", Usage: "require, accept or off: whether the daemons speak TLS; by default require; off with --managed, --bare or a separate store"},
			&cli.StringFlag{Name: "flow-log", Usage: "which connections netplugin logs: off, policed or all; by default policed"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long the daemons may take to be ready; by default a minute, with Kubernetes five"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := positional(c); err != nil {
				return err
			}
			began := time.Now()
			_, err := lab.Up(ctx, lab.Config{
				Dir: c.String("dir"), Bin: c.String("bin"), Hosts: c.Int("hosts"), Masters: c.Int("masters"),
				Datapath: c.String("datapath"), NetMode: c.String("netmode"), FwdMode: c.String("fwdmode"), Store: c.String("store"), Docker: c.String("docker"), DNS: c.String("dns"), Relay: c.String("docker") != "" && !c.Bool("managed"),
				Mode: c.String("mode"), Managed: c.Bool("managed"),
				Routers: c.StringSlice("routers"), Bare: c.Bool("bare"), Kubernetes: c.Bool("kubernetes"), Containerd: c.StringSlice("containerd"), ServiceProxy: c.String("service-proxy"), LogLevel: c.String("log-level"), Timeout: c.Duration("timeout"), TLS: tlsMode(c),
				AgentFlags: agentFlags(c),
				Progress:   os.Stderr,
			})
			if err != nil {
				return fmt.Errorf("%w\n(look around with contiv-lab status, logs and exec; remove with contiv-lab down)", err)
			}
			fmt.Fprintf(os.Stderr, "%d hosts up after %.1f s\n", c.Int("hosts"), time.Since(began).Seconds())
			return nil
		},
	}
}

// agentFlags are the flags of netplugin that are passed on.
func agentFlags(c *cli.Command) []string {
	if which := c.String("flow-log"); which != "" {
		return []string{"--flow-log", which}
	}
	return nil
}

// tlsMode is --tls, or what it is by default.
func tlsMode(c *cli.Command) tlsport.Mode {
	switch {
	case c.String("tls") != "":
		return tlsport.Mode(c.String("tls"))
	case c.Bool("managed") || c.Bool("bare") || c.String("store") != lab.StoreEmbedded:
		return tlsport.Off
	}
	return tlsport.Require
}

func attachCommand() *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "make a container on a host and attach it; prints its addresses as JSON",
		ArgsUsage: "HOST NAME",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "tenant of the network; by default the one called default"},
			&cli.StringFlag{Name: "network", Aliases: []string{"n"}, Usage: "network to attach to", Required: true},
			&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "endpoint group to be in"},
		},
		Action: action([]string{"HOST", "NAME"}, func(ctx context.Context, l *lab.Lab, c *cli.Command, args []string) error {
			container, err := l.Attach(ctx, lab.Attachment{
				Host: args[0], Name: args[1],
				Tenant: c.String("tenant"), Network: c.String("network"), Group: c.String("group"),
			})
			if err != nil {
				return err
			}
			return printJSON(container)
		}),
	}
}

func detachCommand() *cli.Command {
	return &cli.Command{
		Name: "detach", Usage: "detach a container and remove it", ArgsUsage: "NAME",
		Action: action([]string{"NAME"}, func(ctx context.Context, l *lab.Lab, _ *cli.Command, args []string) error {
			return l.Detach(ctx, args[0])
		}),
	}
}

func execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command in a container or on a host", ArgsUsage: "NAME|HOST -- COMMAND…",
		SkipFlagParsing: true,
		Action: func(ctx context.Context, c *cli.Command) error {
			args := c.Args().Slice()
			if len(args) > 1 && args[1] == "--" {
				args = append(args[:1:1], args[2:]...)
			}
			if len(args) < 2 || strings.HasPrefix(args[0], "-") {
				return usagef("exec: expected arguments NAME|HOST -- COMMAND…")
			}
			l, err := lab.Open(c.String("dir"))
			if err != nil {
				return err
			}
			return passThrough(ctx, func(ctx context.Context, std lab.Stdio) error {
				cmd, err := l.Start(ctx, args[0], std, args[1:]...)
				if err != nil {
					return err
				}
				return cmd.Wait()
			})
		},
	}
}

func netctlCommand() *cli.Command {
	return &cli.Command{
		Name: "netctl", Usage: "run netctl on the first host", ArgsUsage: "ARGS…",
		SkipFlagParsing: true,
		Action: func(ctx context.Context, c *cli.Command) error {
			l, err := lab.Open(c.String("dir"))
			if err != nil {
				return err
			}
			return passThrough(ctx, func(ctx context.Context, std lab.Stdio) error {
				return l.Netctl(ctx, std, c.Args().Slice()...)
			})
		},
	}
}

// passThrough connects a command to this terminal. An interrupt from the keyboard
// reaches the command by itself: it decides what that means.
func passThrough(_ context.Context, f func(context.Context, lab.Stdio) error) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	std := lab.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if term := os.Getenv("TERM"); term != "" {
		std.Env = append(std.Env, "TERM="+term)
	}
	err := f(ctx, std)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return endedError{ended}
	}
	return err
}

func signalFlag() cli.Flag {
	return &cli.StringFlag{Name: "signal", Value: "TERM", Usage: "how to end it: TERM, KILL …"}
}

func restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "end a daemon, start it again and wait until it is ready",
		ArgsUsage: "HOST netplugin|netmaster|ovs|etcd|consul|docker", Flags: []cli.Flag{signalFlag()},
		Action: action([]string{"HOST", "DAEMON"}, func(ctx context.Context, l *lab.Lab, c *cli.Command, args []string) error {
			signal, h, err := target(l, c, args[0])
			if err != nil {
				return err
			}
			return bounded(ctx, func(ctx context.Context) error { return h.RestartDaemon(ctx, args[1], signal) })
		}),
	}
}

func stopCommand() *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "end a daemon", ArgsUsage: "HOST DAEMON", Flags: []cli.Flag{signalFlag()},
		Action: action([]string{"HOST", "DAEMON"}, func(ctx context.Context, l *lab.Lab, c *cli.Command, args []string) error {
			signal, h, err := target(l, c, args[0])
			if err != nil {
				return err
			}
			return h.StopDaemon(ctx, args[1], signal)
		}),
	}
}

func startCommand() *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "start a daemon that was stopped and wait until it is ready", ArgsUsage: "HOST DAEMON",
		Action: action([]string{"HOST", "DAEMON"}, func(ctx context.Context, l *lab.Lab, _ *cli.Command, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return err
			}
			return bounded(ctx, func(ctx context.Context) error { return h.StartDaemon(ctx, args[1]) })
		}),
	}
}

func target(l *lab.Lab, c *cli.Command, host string) (syscall.Signal, *lab.Host, error) {
	signal, err := hostinit.ParseSignal(c.String("signal"))
	if err != nil {
		return 0, nil, usageError{err}
	}
	h, err := l.Host(host)
	return signal, h, err
}

// bounded gives a daemon a minute to be ready.
func bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return f(ctx)
}

func cableFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "network", Usage: "only this underlay network (" + strings.Join(lab.Networks(), ", ") + "); may be repeated"}
}

func partitionCommand() *cli.Command {
	return &cli.Command{
		Name: "partition", Usage: "cut a host off the underlay", ArgsUsage: "HOST", Flags: []cli.Flag{cableFlag()},
		Action: action([]string{"HOST"}, func(ctx context.Context, l *lab.Lab, c *cli.Command, args []string) error {
			return l.Partition(ctx, args[0], c.StringSlice("network")...)
		}),
	}
}

func healCommand() *cli.Command {
	return &cli.Command{
		Name: "heal", Usage: "undo partition", ArgsUsage: "HOST", Flags: []cli.Flag{cableFlag()},
		Action: action([]string{"HOST"}, func(ctx context.Context, l *lab.Lab, c *cli.Command, args []string) error {
			return l.Heal(ctx, args[0], c.StringSlice("network")...)
		}),
	}
}

func logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print a daemon's log", ArgsUsage: "HOST DAEMON",
		Action: action([]string{"HOST", "DAEMON"}, func(_ context.Context, l *lab.Lab, _ *cli.Command, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return err
			}
			f, err := os.Open(h.LogFile(args[1]))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(os.Stdout, f)
			return err
		}),
	}
}

func downCommand() *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "remove the lab, whole or half made",
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := positional(c); err != nil {
				return err
			}
			return lab.Down(ctx, c.String("dir"))
		},
	}
}

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
