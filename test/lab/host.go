package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/test/lab/nsenter"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// Host is one machine of the lab.
type Host struct {
	Name    string
	Number  int // from 1
	lab     *Lab
	pid     int           // of its init; 0 when it does not run
	up      chan struct{} // closed when its netmaster has been started
	started sync.Once     // closes up
}

// PID is the host's process 1 as this machine sees it, 0 when the host is not running.
func (h *Host) PID() int { return h.pid }

// ControlIP is the host's address in the control network.
func (h *Host) ControlIP() string { return ControlIP(h.Number).String() }

// VTEPIP is the host's tunnel address.
func (h *Host) VTEPIP() string { return VTEPIP(h.Number).String() }

func (h *Host) client() (*hostinit.Client, error) {
	if h.pid == 0 {
		return nil, errs.New(errs.Unavailable, "%s is not running", h.Name)
	}
	return hostinit.NewClient(h.pid), nil
}

// Stdio is what a command in a host reads and writes; nil members are /dev/null.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string // added to the host's
}

// Start starts a command in the host. The caller waits for it.
func (h *Host) Start(ctx context.Context, std Stdio, args ...string) (*exec.Cmd, error) {
	return h.startIn(ctx, "", std, args...)
}

// Run runs a command in the host to its end.
func (h *Host) Run(ctx context.Context, std Stdio, args ...string) error {
	cmd, err := h.Start(ctx, std, args...)
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// Output runs a command in the host and returns what it prints on standard output,
// without space around it. The error tells what it said on standard error.
func (h *Host) Output(ctx context.Context, args ...string) (string, error) {
	return h.outputIn(ctx, "", args...)
}

// startIn starts a command in the host, and in a network namespace of it when netns,
// a path in the host, is not empty.
func (h *Host) startIn(ctx context.Context, netns string, std Stdio, args ...string) (cmd *exec.Cmd, err error) {
	if h.pid == 0 {
		return nil, errs.New(errs.Unavailable, "%s is not running", h.Name)
	}
	if len(args) == 0 {
		return nil, errs.New(errs.Invalid, "a command is needed")
	}
	err = nsenter.Host(h.pid, netns, func() error {
		program, err := lookHostPath(args[0])
		if err != nil {
			return err
		}
		cmd = exec.CommandContext(ctx, program, args[1:]...)
		cmd.Args[0] = args[0]
		cmd.Stdin, cmd.Stdout, cmd.Stderr = std.In, std.Out, std.Err
		cmd.Env = append([]string{"PATH=" + hostinit.Path, "HOME=/root", "LANG=C.UTF-8"}, std.Env...)
		return cmd.Start()
	})
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", args[0], h.Name, err)
	}
	return cmd, nil
}

func (h *Host) outputIn(ctx context.Context, netns string, args ...string) (string, error) {
	var out, stderr strings.Builder
	cmd, err := h.startIn(ctx, netns, Stdio{Out: &out, Err: &stderr}, args...)
	if err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		said := strings.TrimSpace(stderr.String())
		if said == "" {
			said = strings.TrimSpace(out.String())
		}
		return strings.TrimSpace(out.String()), fmt.Errorf("%s: %s: %w: %s", h.Name, strings.Join(args, " "), err, said)
	}
	return strings.TrimSpace(out.String()), nil
}

// lookHostPath finds a program as the host sees the file system: the calling thread
// is in the host's mount namespace.
func lookHostPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(hostinit.Path) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", errs.New(errs.NotFound, "program %q is not in the host's path", name)
}

// Dial connects from the host's network namespace. The address must be numeric.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	if h.pid == 0 {
		return nil, errs.New(errs.Unavailable, "%s is not running", h.Name)
	}
	err = nsenter.Network(fmt.Sprintf("/proc/%d/ns/net", h.pid), func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens in the host's network namespace. The address must be numeric.
func (h *Host) Listen(network, address string) (in net.Listener, err error) {
	if h.pid == 0 {
		return nil, errs.New(errs.Unavailable, "%s is not running", h.Name)
	}
	err = nsenter.Network(fmt.Sprintf("/proc/%d/ns/net", h.pid), func() error {
		in, err = net.Listen(network, address)
		return err
	})
	return in, err
}

// AgentCredentials are what the host's agent has got when it joined.
func (h *Host) AgentCredentials() (*pki.Credentials, error) {
	stored, err := pki.Dir(h.File(AgentTLSDir)).Load()
	if err != nil {
		return nil, err
	}
	creds := pki.NewCredentials()
	return creds, stored.Use(creds)
}

// HTTP returns a client whose requests leave from the host. URLs must have numeric
// hosts.
func (h *Host) HTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: h.Dial, DisableKeepAlives: true}}
}
