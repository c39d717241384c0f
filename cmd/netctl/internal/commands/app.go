// Package commands is what netctl does: one file a group of commands. A command reads
// options, makes requests through contivmodel/client, and prints. Output that scripts
// may read goes to stdout; messages go to stderr; the exit status says the rest:
//
//	0  done, or help was asked for
//	1  the command line is wrong
//	2  version: the server cannot be reached
//	3  the server refused, or cannot be reached, or the login file is unusable
//	   or, with --wait, a host has not applied the change in time
//	4  reading stdin or writing stdout failed
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/version"
)

// Exit statuses.
const (
	exitOK      = 0
	exitUsage   = 1
	exitServer  = 2
	exitRequest = 3
	exitLocal   = 4
)

// failure is an error with the status netctl exits with.
type failure struct {
	status int
	err    error
	help   bool // show how the command is used, on stdout
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// misuse is a command line that cannot be right, in a way that the command's help
// explains.
func misuse(format string, args ...any) error {
	return &failure{status: exitUsage, err: fmt.Errorf(format, args...), help: true}
}

// Run runs netctl with args, args[0] being its name, and returns its exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := tree(stdin, stdout, stderr).Run(ctx, args)
	if err == nil {
		return exitOK
	}
	f := &failure{status: exitUsage}
	if !errors.As(err, &f) {
		f.err = err
	}
	// stderr is where complaints go; if it is gone there is nobody to tell.
	_, _ = fmt.Fprintf(stderr, "Error: %s\n", strings.TrimSpace(f.Error()))
	return f.status
}

// tree is netctl with all its commands.
func tree(stdin io.Reader, stdout, stderr io.Writer) *cli.Command {
	root := &cli.Command{
		Name:      "netctl",
		Usage:     "configure and inspect Contiv networks",
		Reader:    stdin,
		Writer:    stdout,
		ErrWriter: stderr,
		Flags: append(connectionFlags(), &cli.BoolFlag{
			Name: "version", Aliases: []string{"v"}, Usage: "print the version of netctl", Local: true,
		}),
		Commands: []*cli.Command{
			aciGwCommands(),
			appProfileCommands(),
			applyCommand(),
			auditCommand(),
			authorityCommands(),
			bgpCommands(),
			canICommand(),
			clusterCommands(),
			completeCommand(),
			completionCommand(),
			configCommands(),
			doctorCommand(),
			endpointCommands(),
			explainCommand(),
			exportCommand(),
			externalContractsCommands(),
			flowsCommand(),
			globalCommands(),
			groupCommands(),
			hostCommands(),
			k8sCommands(),
			loginCommand(),
			logoutCommand(),
			netprofileCommands(),
			networkCommands(),
			policyCommands(),
			roleCommands(),
			securityCommands(),
			serviceCommands(),
			supportCommand(),
			tenantCommands(),
			tokenCommands(),
			traceCommand(),
			userCommands(),
			versionCommand(),
			whoAmICommand(),
		},
		HideVersion: true, // ours prints three lines
		// Errors come back to us; the library must neither print them nor exit.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.Bool("version") {
				return print(cmd, "netctl version\n"+version.Block())
			}
			return noCommand(cmd)
		},
	}
	prepare(root)
	return root
}

// prepare sets on a command and everything below it what holds for all.
func prepare(cmd *cli.Command) {
	cmd.OnUsageError = func(_ context.Context, _ *cli.Command, err error, _ bool) error { return usage(cmd, err) }
	cmd.DisableSliceFlagSeparator = true
	if len(cmd.Commands) == 0 {
		cmd.HideHelpCommand = true // or nothing could be named "help"
	} else if cmd.Action == nil {
		cmd.Action = func(_ context.Context, cmd *cli.Command) error { return noCommand(cmd) }
	}
	slices.SortFunc(cmd.Commands, func(a, b *cli.Command) int { return strings.Compare(a.Name, b.Name) })
	for _, sub := range cmd.Commands {
		prepare(sub)
	}
}

// usage puts the library's complaints about options into our words.
func usage(cmd *cli.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		text = "unknown option " + name
	} else if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		text = "option " + name + " needs a value"
	} else if what, ok := strings.CutSuffix(text, ": parse error"); ok {
		text = strings.Replace(what, "for flag", "for option", 1) + ": expected true or false"
	} else if what, _, ok := strings.Cut(text, ": strconv."); ok {
		text = strings.Replace(what, "for flag", "for option", 1) + ": expected a number"
	} else {
		text = strings.Replace(text, "for flag", "for option", 1)
	}
	return &failure{status: exitUsage, err: fmt.Errorf("%s; see '%s --help'", text, cmd.FullName())}
}

// noCommand answers a group of commands without one: help, or a complaint if there is
// something that is none.
func noCommand(cmd *cli.Command) error {
	if cmd.Args().Present() {
		return &failure{status: exitUsage, err: fmt.Errorf("unknown command %q; see '%s --help'", cmd.Args().First(), cmd.FullName())}
	}
	return showHelp(cmd)
}

func showHelp(cmd *cli.Command) error {
	if cmd.Root() == cmd {
		return cli.ShowRootCommandHelp(cmd)
	}
	return cli.ShowSubcommandHelp(cmd)
}

// arguments are the positional arguments of a command.
type arguments struct {
	names   string // for its help, "NETWORK GROUP"
	count   int
	missing string // what to say when there are more or fewer
}

// leaf makes a command that takes exactly the given arguments.
func leaf(name, usage string, args arguments, flags []cli.Flag, run func(ctx context.Context, cmd *cli.Command) error) *cli.Command {
	if slices.Contains([]string{"apply", "create", "update", "set", "rm", "rule-add", "rule-rm"}, name) {
		flags = append(slices.Clone(flags), waitFlag())
	}
	return plain(name, usage, args, flags, run)
}

// plain makes a command of that kind that changes nothing that hosts apply.
func plain(name, usage string, args arguments, flags []cli.Flag, run func(ctx context.Context, cmd *cli.Command) error) *cli.Command {
	aliases := map[string][]string{"rm": {"delete"}, "ls": {"list"}, "group-ls": {"group-list"}}
	return &cli.Command{
		Name: name, Aliases: aliases[name], Usage: usage, ArgsUsage: args.names, Flags: flags,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			err := error(nil)
			if cmd.Args().Len() != args.count {
				err = misuse("%s", args.missing)
			} else {
				err = run(ctx, cmd)
			}
			var f *failure
			if errors.As(err, &f) && f.help {
				if herr := showHelp(cmd); herr != nil {
					return &failure{status: exitLocal, err: herr}
				}
			}
			return err
		},
	}
}

// noArguments is what commands without positional arguments take.
func noArguments() arguments { return arguments{missing: "More arguments than required"} }

// print writes to stdout.
func print(cmd *cli.Command, text string) error {
	if _, err := io.WriteString(cmd.Root().Writer, text); err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("write the output: %w", err)}
	}
	return nil
}
