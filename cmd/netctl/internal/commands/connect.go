package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
)

const (
	defaultURL = "http://netmaster:9999"
	// masterSocket is where a netmaster serves root of its host.
	masterSocket = "/run/contiv/netmaster.sock"
)

// connectionFlags say which netmaster to talk to, and how.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "netmaster", Usage: "`URL` of netmaster, or several separated by commas; unix:///PATH is a socket of this host",
			Value: defaultURL, Sources: cli.EnvVars("NETMASTER"),
		},
		&cli.StringFlag{Name: "context", Usage: "`NAME` of a cluster of netctl config", Sources: cli.EnvVars("NETCTL_CONTEXT")},
		&cli.StringFlag{Name: "ca", Usage: "`FILE` with the cluster's certificate authority", Sources: cli.EnvVars("NETCTL_CA")},
		&cli.BoolFlag{Name: "insecure", Usage: "do not verify the TLS certificate", Sources: cli.EnvVars("INSECURE")},
	}
}

// target is where a command talks to.
type target struct {
	name     string // of the context; empty: none is used
	urls     []string
	ca       string // PEM
	insecure bool
	token    string
	fileErr  error // why the file of logins cannot be read; a login replaces it
}

// selectors are the options that choose a target. Empty means: not given.
type selectors struct {
	netmaster, context, ca string
	insecure               bool
}

func selected(cmd *cli.Command) selectors {
	s := selectors{context: cmd.String("context"), ca: cmd.String("ca"), insecure: cmd.Bool("insecure")}
	if cmd.IsSet("netmaster") {
		s.netmaster = cmd.String("netmaster")
	}
	return s
}

// resolve finds the target: what the options name, else the context in use, else, for root of
// a netmaster's host and netmaster's own user, its socket, else the default. A file of logins that cannot be read
// matters only where a token could be sent.
func (s selectors) resolve(uid int, socket string) (target, error) {
	file, err := readConfig()
	name := s.context
	if name == "" && s.netmaster == "" {
		name = file.Current
	}
	t := target{name: name, insecure: s.insecure, token: file.Token, fileErr: err}
	switch {
	case name != "":
		if t.fileErr != nil {
			return t, t.fileErr
		}
		c, ok := file.Contexts[name]
		if !ok {
			return t, fmt.Errorf("there is no context %q: see netctl config ls", name)
		}
		t.urls, t.ca, t.insecure, t.token = strings.Split(c.Netmaster, ","), c.CA, s.insecure || c.Insecure, c.Token
		if s.netmaster != "" { // another way to the same cluster
			t.urls = strings.Split(s.netmaster, ",")
		}
	case s.netmaster != "":
		t.urls = strings.Split(s.netmaster, ",")
	default:
		t.urls = []string{defaultServer(uid, socket)}
	}
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return t, fmt.Errorf("read the certificate authority: %w", err)
		}
		t.ca = string(text)
	}
	if !usesTLS(t.urls) {
		t.token, t.fileErr = "", nil
	}
	return t, nil
}

// defaultServer is the socket of this host's netmaster, if there is one, for root and for the user
// that netmaster runs as.
func defaultServer(uid int, socket string) string {
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return defaultURL
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); uid == 0 || ok && uid == int(owner.Uid) {
		return "unix://" + socket
	}
	return defaultURL
}

// find is resolve with what this process is.
func (s selectors) find() (target, error) {
	t, err := s.resolve(os.Geteuid(), masterSocket)
	if err == nil {
		err = t.fileErr
	}
	if err != nil {
		return t, &failure{status: exitRequest, err: err}
	}
	return t, nil
}

// connect makes a client as the global options say. It does not connect yet.
func connect(cmd *cli.Command) (*client.Client, error) {
	t, err := selected(cmd).find()
	if err != nil {
		return nil, err
	}
	return t.dial(throughChanges)
}

// dial makes a client.
func (t target) dial(patience time.Duration) (*client.Client, error) {
	c, err := client.New(client.Config{URLs: t.urls, CA: []byte(t.ca), Insecure: t.insecure, Token: t.token, Patience: patience})
	if err != nil {
		return nil, &failure{status: exitUsage, err: fmt.Errorf("Error connecting to netmaster: %w", err)} // fixed text
	}
	return c, nil
}

// throughChanges is how long a command waits for the next leader when one is lost: longer than that
// takes.
const throughChanges = 10 * time.Second

// usesTLS reports whether all URLs are such that a token may be sent there.
func usesTLS(urls []string) bool {
	for _, u := range urls {
		if !strings.HasPrefix(u, "https://") {
			return false
		}
	}
	return true
}

// refused gives an error of a request the status netctl exits with.
func refused(err error) error {
	if err == nil {
		return nil
	}
	var f *failure
	if errors.As(err, &f) {
		return err
	}
	return &failure{status: exitRequest, err: err}
}
