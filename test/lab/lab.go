package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/install/plugin"
	"github.com/contiv/netplugin/utils/errs"
)

// Lab is a running lab. Its methods may be called concurrently, also on several Labs
// of one directory in several processes.
type Lab struct {
	cfg      Config
	underlay *Host
	hosts    []*Host
	routers  []*Router
	keys     kubeKeys // in the process that made it
}

// Up makes a lab and returns when every daemon is ready. When it fails, what was made
// is left to be looked at; Down removes it.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := c.findPrograms(); err != nil {
		return nil, err
	}
	if err := claimDir(c); err != nil {
		return nil, err
	}
	l := newLab(c)
	if err := os.Mkdir(l.path("containers"), 0o755); err != nil {
		return nil, err
	}
	if c.Kubernetes {
		if l.keys, err = newKubeKeys(); err != nil {
			return nil, fmt.Errorf("keys of Kubernetes: %w", err)
		}
	}
	if c.Managed {
		if err := plugin.Write(c.Bin, l.PluginDir()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, errs.New(errs.Timeout, "the lab was not up after %s", c.Timeout))
	defer cancel()

	l.say("underlay: networks control, vtep and trunk")
	if err := l.startUnderlay(ctx); err != nil {
		return nil, err
	}
	if err := l.shareSecret(); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, h := range l.hosts {
		g.Go(func() error {
			if err := l.startHost(gctx, h); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
			return nil
		})
	}
	for _, r := range l.routers {
		g.Go(func() error {
			if err := l.startRouter(gctx, r); err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if c.Kubernetes {
		if err := l.awaitNodes(ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Open returns the lab that is in a directory.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	l := newLab(c)
	inits, err := findInits(dir)
	if err != nil {
		return nil, err
	}
	for _, h := range append(l.hosts, l.underlay) {
		h.pid = inits[h.Name]
	}
	for _, r := range l.routers {
		r.pid = inits[r.Name]
	}
	return l, nil
}

// Down ends every process of the lab in a directory and removes the directory. It
// needs nothing but the directory's name; a directory without a lab is no error.
func Down(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	inits, err := findInits(dir)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for name, pid := range inits {
		g.Go(func() error { return killInit(ctx, dir, name, pid) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := errors.Join(removeCgroups(cgroupOf(dir)), removePluginCgroups(dir, "*")); err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, labFile))
	switch {
	case err == nil:
		return os.RemoveAll(dir)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	// Not a lab's, unless it is empty: then Up was interrupted before it wrote anything.
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) && len(inits) > 0 {
		return err
	}
	return nil
}

func newLab(c Config) *Lab {
	l := &Lab{cfg: c}
	l.underlay = &Host{lab: l, Name: underlayName}
	for n := 1; n <= c.Hosts; n++ {
		l.hosts = append(l.hosts, &Host{lab: l, Number: n, Name: HostName(n), up: make(chan struct{})})
	}
	l.newRouters()
	return l
}

// Config returns the lab's configuration, defaults filled in.
func (l *Lab) Config() Config { return l.cfg }

// Hosts returns the hosts in order.
func (l *Lab) Hosts() []*Host { return l.hosts }

// Masters returns the hosts that run netmaster.
func (l *Lab) Masters() []*Host { return l.hosts[:l.cfg.Masters] }

// Host returns a host by its name.
func (l *Lab) Host(name string) (*Host, error) {
	for _, h := range l.hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, errs.New(errs.NotFound, "host %q is not in the lab: expected %s to %s", name, HostName(1), HostName(l.cfg.Hosts))
}

func (l *Lab) say(format string, args ...any) {
	// Progress is informational; a writer that fails changes nothing.
	_, _ = fmt.Fprintf(l.cfg.Progress, format+"\n", args...)
}

func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }
