package lab

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// Start starts a command in a container, or in a host. The caller waits for it.
func (l *Lab) Start(ctx context.Context, name string, std Stdio, args ...string) (*exec.Cmd, error) {
	if h, ok := l.machine(name); ok {
		return h.Start(ctx, std, args...)
	}
	h, netns, err := l.place(name)
	if err != nil {
		return nil, err
	}
	return h.startIn(ctx, netns, std, args...)
}

// Output runs a command in a container, a host, a router or an outside, and returns what it prints.
func (l *Lab) Output(ctx context.Context, name string, args ...string) (string, error) {
	if h, ok := l.machine(name); ok {
		return h.Output(ctx, args...)
	}
	h, netns, err := l.place(name)
	if err != nil {
		return "", err
	}
	return h.outputIn(ctx, netns, args...)
}

// machine finds a host or a router.
func (l *Lab) machine(name string) (*Host, bool) {
	if r, err := l.Router(name); err == nil {
		return &r.Host, true
	}
	h, err := l.Host(name)
	return h, err == nil
}

func (l *Lab) place(container string) (*Host, string, error) {
	if h, netns, ok := l.outside(container); ok {
		return h, netns, nil
	}
	if container == Outsider && l.cfg.Kubernetes {
		return l.underlay, l.outsiderNetns(), nil
	}
	c, err := l.Container(container)
	if errs.Is(err, errs.NotFound) {
		return nil, "", errs.New(errs.NotFound, "%q is neither a host nor an attached container", container)
	}
	if err != nil {
		return nil, "", err
	}
	h, err := l.Host(c.Host)
	return h, c.Netns, err
}

// Netctl runs netctl on the first host that is up, as Run does.
func (l *Lab) Netctl(ctx context.Context, std Stdio, args ...string) error {
	for _, h := range l.hosts {
		if h.pid != 0 {
			return h.Run(ctx, std, append([]string{"netctl"}, args...)...)
		}
	}
	return errs.New(errs.Unavailable, "no host is running")
}

// NetctlOutput runs netctl and returns what it prints.
func (l *Lab) NetctlOutput(ctx context.Context, args ...string) (string, error) {
	var out, stderr strings.Builder
	if err := l.Netctl(ctx, Stdio{Out: &out, Err: &stderr}, args...); err != nil {
		return out.String(), fmt.Errorf("netctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}
