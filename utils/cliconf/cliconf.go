// Package cliconf holds what the command lines of netmaster and netplugin share: how
// options are named in the environment, what a wrong option looks like, and three
// groups of options: Log, Network and Store. A daemon embeds the groups it needs:
//
//	var (
//		env   = cliconf.Env("CONTIV_NETPLUGIN_")
//		log   cliconf.Log
//		net   cliconf.Network
//		store cliconf.Store
//	)
//	cmd := &cli.Command{
//		Name:   "netplugin",
//		Flags:  slices.Concat(log.Flags(env), net.Flags(env), store.Flags(env)),
//		Action: func(ctx context.Context, cmd *cli.Command) error {
//			logger, closeLog, err := log.Open("netplugin")
//			…
//			err = net.Validate()    // then store.Validate(), then the daemon's own
//			…
//		},
//	}
//	os.Exit(cliconf.Run(ctx, cmd, os.Args))
//
// A flag on the command line beats its environment variable; an empty variable counts
// as not set, because that is what an unedited environment file holds.
package cliconf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/version"
)

// Exit statuses of the daemons.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 22 // an option is unknown or invalid
)

// UsageError is an invalid option or combination of options.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError. The text names the option and what was expected.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// Env is the prefix of a program's environment variables, with its underscore.
type Env string

// Var returns the source of an option that the environment may set.
func (e Env) Var(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(variable(string(e) + name))
}

// variable is an environment variable; an empty one is not set.
type variable string

var _ cli.EnvValueSource = variable("")

func (v variable) Lookup() (string, bool) {
	text := strings.TrimSpace(os.Getenv(string(v)))
	return text, text != ""
}

func (v variable) IsFromEnv() bool  { return true }
func (v variable) Key() string      { return string(v) }
func (v variable) String() string   { return fmt.Sprintf("environment variable %q", string(v)) }
func (v variable) GoString() string { return fmt.Sprintf("cliconf.variable(%q)", string(v)) }

// Run runs a daemon's command line and returns its exit status. It adds --version,
// answers it, and prints an error as one line on stderr: with status ExitUsage for
// anything wrong with the options, ExitFailure for everything else.
func Run(ctx context.Context, cmd *cli.Command, args []string) int {
	cmd.HideVersion = true // ours prints three lines
	showVersion := false
	cmd.Flags = append(cmd.Flags, &cli.BoolFlag{
		Name: "version", Aliases: []string{"v"}, Usage: "print version, git commit and build time",
		Destination: &showVersion, HideDefault: true, Local: true,
	})
	cmd.HideHelpCommand = true
	// Errors come back to us; the library must neither print nor exit.
	cmd.ExitErrHandler = func(context.Context, *cli.Command, error) {}
	eachCommand(cmd, func(c *cli.Command) {
		c.OnUsageError = func(_ context.Context, _ *cli.Command, err error, _ bool) error { return plain(err) }
		action, leaf := c.Action, len(c.Commands) == 0
		c.Action = func(ctx context.Context, c *cli.Command) error {
			switch {
			case showVersion:
				_, err := fmt.Fprint(c.Root().Writer, version.Block())
				return err
			case c.Args().Present() && (leaf || c == cmd):
				return Usagef("unexpected argument %q", c.Args().First())
			case action == nil:
				return Usagef("missing command")
			}
			return action(ctx, c)
		}
	})
	err := cmd.Run(ctx, args)
	if err == nil {
		return ExitOK
	}
	var (
		usage *UsageError
		coder cli.ExitCoder
	)
	stderr := cmd.ErrWriter
	if stderr == nil {
		stderr = os.Stderr
	}
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %s (see %s --help)\n", cmd.Name, oneLine(err), cmd.Name)
		return ExitUsage
	case errors.As(err, &coder):
		if text := oneLine(err); text != "" {
			fmt.Fprintf(stderr, "%s: %s\n", cmd.Name, text)
		}
		return coder.ExitCode()
	}
	if isParseError(err) {
		fmt.Fprintf(stderr, "%s: %s (see %s --help)\n", cmd.Name, oneLine(err), cmd.Name)
		return ExitUsage
	}
	fmt.Fprintf(stderr, "%s: %s\n", cmd.Name, oneLine(err))
	return ExitFailure
}

func eachCommand(cmd *cli.Command, do func(*cli.Command)) {
	do(cmd)
	for _, c := range cmd.Commands {
		eachCommand(c, do)
	}
}

// isParseError recognises the one error the library returns past OnUsageError: an
// environment variable whose text does not fit its flag.
func isParseError(err error) bool { return strings.HasPrefix(err.Error(), "could not parse ") }

// plain turns the library's texts into the style of ours.
func plain(err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return Usagef("unknown option --%s", strings.TrimLeft(name, "-"))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return Usagef("option --%s needs a value", strings.TrimLeft(name, "-"))
	}
	return &UsageError{Err: err}
}

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
