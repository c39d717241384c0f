package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/utils/errs"
)

// PowerOff ends a host at once with everything on it, as when its power is cut. Its
// disk (privateDirs) is kept. A host that is off is no error.
func (l *Lab) PowerOff(ctx context.Context, host string) error {
	h, err := l.Host(host)
	if err != nil || h.pid == 0 {
		return err
	}
	if err := killInit(ctx, l.cfg.Dir, h.Name, h.pid); err != nil {
		return err
	}
	h.pid = 0
	if err := l.unplug(h); err != nil {
		return err
	}
	return errors.Join(removeCgroups(l.cgroup()+"/"+h.Name), removePluginCgroups(l.cfg.Dir, h.Name))
}

// PowerOn starts a host that is off and returns when the named daemons are ready, which
// it starts in that order; without names, all of the host.
func (l *Lab) PowerOn(ctx context.Context, host string, daemons ...string) error {
	h, err := l.Host(host)
	if err != nil {
		return err
	}
	if h.pid != 0 {
		return errs.New(errs.Exists, "%s is running", h.Name)
	}
	if l.cfg.Kubernetes && l.keys == (kubeKeys{}) {
		return errs.New(errs.Invalid, "%s is a node of a cluster whose keys only the process has that made the lab", h.Name)
	}
	if err := l.boot(ctx, h); err != nil {
		return err
	}
	if len(daemons) == 0 {
		daemons = h.Daemons()
	}
	for _, d := range daemons {
		if err := h.StartDaemon(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// unplug removes a host's links. The kernel does that too when the host is gone, but
// possibly after they are needed again.
func (l *Lab) unplug(h *Host) error {
	return inNetwork(l.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		for _, n := range networks() {
			link, err := u.LinkByName(h.port(n))
			if err == nil {
				err = u.LinkDel(link)
			}
			// The kernel may have removed it at this moment.
			if _, gone := u.LinkByName(h.port(n)); err != nil && !errors.As(gone, new(netlink.LinkNotFoundError)) {
				return fmt.Errorf("remove link %s: %w", h.port(n), err)
			}
		}
		return nil
	})
}
