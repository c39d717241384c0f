package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// Forward carries connections that in accepts on to an address that is reached from the
// host, numeric and with a port, until ctx ends. It closes in and all of them.
func (h *Host) Forward(ctx context.Context, in net.Listener, to string) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	for {
		conn, err := in.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("accept connections to %s: %w", h.Name, err), in.Close())
		}
		all.Go(func() { h.carry(ctx, conn, to) })
	}
}

// carry carries a connection on, until one end closes it or ctx ends.
func (h *Host) carry(ctx context.Context, conn net.Conn, to string) {
	defer conn.Close()
	out, err := h.Dial(ctx, "tcp", to)
	if err != nil {
		return // the client sees that nobody answers
	}
	defer out.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, out}, {out, conn}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // a connection that breaks is closed
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// AwaitEnd returns when the host has ended, as it does when the lab is taken down, or with an
// error when ctx ends.
func (h *Host) AwaitEnd(ctx context.Context) error {
	if h.pid == 0 {
		return errs.New(errs.Unavailable, "%s is not running", h.Name)
	}
	fd, err := unix.PidfdOpen(h.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", h.pid, err)
	}
	defer unix.Close(fd)
	// Only now is it certain whose pid this is.
	if got, ok := initOf(h.pid, h.lab.cfg.Dir); !ok || got != h.Name {
		return nil
	}
	return awaitExit(ctx, fd, h.Name)
}
