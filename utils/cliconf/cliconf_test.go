package cliconf_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/cliconf"
)

// daemon is a program with all three groups and one subcommand.
type daemon struct {
	log   cliconf.Log
	net   cliconf.Network
	store cliconf.Store

	ran      string
	out, err bytes.Buffer
}

func (d *daemon) run(ctx context.Context, args ...string) int {
	env := cliconf.Env("CONTIV_CLICONFTEST_")
	check := func(context.Context, *cli.Command) error {
		if _, err := d.log.Open("daemon", io.Discard); err != nil {
			return err
		}
		if err := d.net.Validate(); err != nil {
			return err
		}
		if err := d.store.Validate(); err != nil {
			return err
		}
		d.ran = "daemon"
		return nil
	}
	cmd := &cli.Command{
		Name: "daemon", Writer: &d.out, ErrWriter: &d.err, Action: check,
		Flags: slices.Concat(d.log.Flags(env), d.net.Flags(env), d.store.Flags(env)),
		Commands: []*cli.Command{
			{Name: "check", Action: func(context.Context, *cli.Command) error { d.ran = "check"; return nil }},
			{Name: "fail", Action: func(context.Context, *cli.Command) error { return errors.New("the sky\nis falling") }},
			{Name: "three", Action: func(context.Context, *cli.Command) error { return cli.Exit("", 3) }},
		},
	}
	return cliconf.Run(ctx, cmd, append([]string{"daemon"}, args...))
}

// modes are the required options of a run that is otherwise right.
var modes = []string{"--mode", "docker", "--netmode", "vxlan", "--fwdmode", "routing"}

func with(args ...string) []string { return slices.Concat(modes, args) }

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		env    map[string]string
		status int
		stderr string // without the program's name and the pointer to --help
		stdout string // prefix
		ran    string
	}{
		{name: "all well", args: modes, ran: "daemon"},
		{name: "single dash, equals sign, alias", args: []string{"-cluster-mode=Kubernetes", "-network-mode", "VLAN", "--forward-mode=bridge"}, ran: "daemon"},
		{name: "environment", env: map[string]string{"MODE": "test", "NET_MODE": "vlan", "FORWARD_MODE": "routing"}, ran: "daemon"},
		{name: "flag beats environment", args: modes, env: map[string]string{"MODE": "nonsense"}, ran: "daemon"},
		{name: "empty variables are not set", args: modes, env: map[string]string{"LOG_LEVEL": "", "USE_SYSLOG": "", "CONSUL_ENDPOINTS": ""}, ran: "daemon"},
		{name: "version", args: []string{"--version"}, stdout: "Version: unknown\nGitCommit: unknown\nBuildTime: unknown\n"},
		{name: "version, short", args: []string{"-v"}, stdout: "Version: unknown\n"},
		{name: "help", args: []string{"--help"}, stdout: "NAME:"},
		{name: "help, short", args: []string{"-h"}, stdout: "NAME:"},
		{name: "subcommand", args: []string{"check"}, ran: "check"},
		{name: "subcommand fails", args: []string{"fail"}, status: 1, stderr: "the sky; is falling"},
		{name: "subcommand has a status", args: []string{"three"}, status: 3},
		{name: "subcommand, unknown option", args: []string{"check", "--deep"}, status: 22, stderr: "unknown option --deep"},
		{name: "subcommand, argument", args: []string{"check", "all"}, status: 22, stderr: `unexpected argument "all"`},
		{name: "unknown option", args: with("--bogus"), status: 22, stderr: "unknown option --bogus"},
		{name: "unknown option with value", args: with("--bogus=1"), status: 22, stderr: "unknown option --bogus"},
		{name: "argument", args: with("now"), status: 22, stderr: `unexpected argument "now"`},
		{name: "value missing", args: []string{"--mode"}, status: 22, stderr: "option --mode needs a value"},
		{name: "not a boolean", args: with("--use-syslog=perhaps"), status: 22, stderr: `invalid value "perhaps" for flag -use-syslog: parse error`},
		{name: "variable is not a boolean", args: modes, env: map[string]string{"USE_SYSLOG": "perhaps"}, status: 22, stderr: `could not parse "perhaps" as bool value from environment variable "CONTIV_CLICONFTEST_USE_SYSLOG" for flag use-syslog: parse error`},
		{name: "log level", args: with("--log-level", "LOUD"), status: 22, stderr: `--log-level "LOUD" is unknown, expected DEBUG, INFO, WARN or ERROR`},
		{name: "logging comes first", args: []string{"--log-level", "LOUD", "--mode", "x"}, status: 22, stderr: `--log-level "LOUD" is unknown, expected DEBUG, INFO, WARN or ERROR`},
		{name: "syslog url", args: with("--syslog", "--syslog-url", "here"), status: 22, stderr: `--syslog-url "here" is not proto://host:port`},
		{name: "no mode", args: modes[2:], status: 22, stderr: "--mode is not set, expected one of docker, kubernetes, swarm-mode, test"},
		{name: "mode", args: []string{"--mode", "mesos"}, status: 22, stderr: `--mode "mesos" is unknown, expected one of docker, kubernetes, swarm-mode, test`},
		{name: "no netmode", args: modes[:2], status: 22, stderr: "--netmode is not set, expected one of vlan, vxlan"},
		{name: "no fwdmode", args: modes[:4], status: 22, stderr: "--fwdmode is not set, expected one of bridge, routing"},
		{name: "vxlan bridge", args: with("--fwdmode", "bridge"), status: 22, stderr: "--netmode vxlan requires --fwdmode routing"},
		{name: "two stores", args: with("--etcd", "http://a:1", "--consul", "http://b:2"), status: 22, stderr: "ambiguous cluster store db endpoints: both --etcd-endpoints and --consul-endpoints are set"},
		{name: "consul", args: with("--consul", "http://b:2,consul://c:3,https://d:4", "--consul-token", "secret", "--consul-ca", "ca.pem"), ran: "daemon"},
		{name: "consul, not a url", args: with("--consul", "b:8500"), status: 22, stderr: `--consul-endpoints: "b:8500" is not a URL like http://10.0.0.1:8500`},
		{name: "consul, key without certificate", args: with("--consul", "http://b:2", "--consul-key", "k.pem"), status: 22, stderr: "--consul-cert and --consul-key must be set together"},
		{name: "not a url", args: with("--etcd", "http://a:1,10.0.0.1:2379"), status: 22, stderr: `--etcd-endpoints: "10.0.0.1:2379" is not a URL like http://10.0.0.1:2379`},
		{name: "only commas", args: with("--etcd", " , "), status: 22, stderr: "--etcd-endpoints: no endpoint, expected at least one"},
		{name: "path", args: with("--etcd", "http://a:1/keys"), status: 22, stderr: `--etcd-endpoints: "http://a:1/keys": expected only scheme://host:port`},
		{name: "certificate without key", args: with("--etcd-cert", "c.pem"), status: 22, stderr: "--etcd-cert and --etcd-key must be set together"},
		{name: "password not shown", args: with("--etcd-user", "secret"), status: 22, stderr: "--etcd-user is not name:password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv("CONTIV_CLICONFTEST_"+name, value)
			}
			var d daemon
			if got := d.run(t.Context(), tt.args...); got != tt.status {
				t.Errorf("status %d, want %d (stderr %q)", got, tt.status, d.err.String())
			}
			want := tt.stderr
			if want != "" {
				want = "daemon: " + want
				if tt.status == cliconf.ExitUsage {
					want += " (see daemon --help)"
				}
				want += "\n"
			}
			if diff := cmp.Diff(want, d.err.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if got := d.out.String(); !strings.HasPrefix(got, tt.stdout) || (tt.stdout == "" && got != "") {
				t.Errorf("stdout %q, want prefix %q", got, tt.stdout)
			}
			if d.ran != tt.ran {
				t.Errorf("ran %q, want %q", d.ran, tt.ran)
			}
		})
	}
}

func TestStoreEndpoints(t *testing.T) {
	tests := []struct {
		name  string
		store cliconf.Store
		want  []string
		kind  string
	}{
		{"default", cliconf.Store{}, []string{"http://127.0.0.1:2379"}, "etcd"},
		{"all of them, empty ones dropped", cliconf.Store{Etcd: "http://a:1,, https://b:2/ ,etcd://[::1]:3"}, []string{"http://a:1", "https://b:2", "http://[::1]:3"}, "etcd"},
		{"embedded", cliconf.Store{Kind: "Embedded"}, nil, "embedded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.store.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.store.Endpoints); diff != "" || tt.store.Kind != tt.kind {
				t.Errorf("kind %s, endpoints (-want +got):\n%s", tt.store.Kind, diff)
			}
		})
	}
	s := cliconf.Store{User: "root:a:b"}
	if err := s.Validate(); err != nil || s.User != "root" || s.Password != "a:b" {
		t.Errorf("user %q, password %q, error %v; want root, a:b", s.User, s.Password, err)
	}
}

func TestLogFormats(t *testing.T) {
	var text, json bytes.Buffer
	for _, tt := range []struct {
		l cliconf.Log
		w *bytes.Buffer
	}{{cliconf.Log{Level: "debug"}, &text}, {cliconf.Log{Level: "WARN", JSON: true}, &json}} {
		log, err := tt.l.Open("x", tt.w)
		if err != nil {
			t.Fatal(err)
		}
		log.WithField("net", "n1").Debug("created")
		log.WithField("net", "n1").Warn("gone")
	}
	if got := text.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "net=n1") || !strings.Contains(got, "time=") {
		t.Errorf("text log: %q", got)
	}
	if got := json.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"msg":"gone"`) {
		t.Errorf("JSON log: %q", got)
	}
}

// TestSecretsLeaveTheEnvironment: what the daemon runs does not learn the credentials of the
// store.
func TestSecretsLeaveTheEnvironment(t *testing.T) {
	const prefix = cliconf.Env("CONTIV_TEST_")
	for _, name := range []string{"ETCD_USER", "CONSUL_TOKEN"} {
		t.Setenv(string(prefix)+name, "name:secret")
	}
	var s cliconf.Store
	cmd := &cli.Command{Name: "x", Flags: s.Flags(prefix), Action: func(context.Context, *cli.Command) error { return s.Validate() }}
	if status := cliconf.Run(t.Context(), cmd, []string{"x"}); status != cliconf.ExitOK {
		t.Fatalf("status %d", status)
	}
	if s.User != "name" || s.Password != "secret" || s.Token != "name:secret" {
		t.Errorf("%+v", s)
	}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, string(prefix)) {
			t.Errorf("%s is left", strings.Split(v, "=")[0])
		}
	}
}
