package hostinit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// Main is the whole program of a host's process 1. It returns the exit status.
func Main() int {
	ready := os.NewFile(3, "ready")
	err := run(os.Stdin, func() error {
		if _, err := io.WriteString(ready, readyWord); err != nil {
			return fmt.Errorf("report readiness: %w", err)
		}
		return ready.Close()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		// The lab reads this; when it has gone, the line above is in the init's log.
		_, _ = io.WriteString(ready, err.Error())
		return 1
	}
	return 0
}

const readyWord = "ready"

// AwaitReady reads an init's descriptor 3 to its end.
func AwaitReady(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, 64<<10))
	switch {
	case err != nil:
		return fmt.Errorf("wait for the host's init: %w", err)
	case string(b) == readyWord:
		return nil
	case len(b) == 0:
		return fmt.Errorf("the host's init ended before it was ready")
	}
	return fmt.Errorf("start the host's init: %s", b)
}

// Decode reads a whole Config. One that is cut short is an error.
func Decode(r io.Reader) (c Config, err error) {
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		return c, fmt.Errorf("read the host's configuration: %w", err)
	}
	return c, nil
}

func run(config io.Reader, ready func() error) error {
	c, err := Decode(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := dress(ctx, c); err != nil {
		return err
	}
	s := newSupervisor()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	// A process 1 that is asked to end by a process of its own host goes on. Caught
	// and forgotten, not ignored: daemons would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM)

	listener, err := net.Listen("unix", SocketPath)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := ready(); err != nil {
		return err
	}
	for {
		select {
		case <-children:
			s.reap()
		case err := <-failed:
			return fmt.Errorf("serve %s: %w", SocketPath, err)
		}
	}
}

func dress(ctx context.Context, c Config) error {
	if err := mountAll(c); err != nil {
		return err
	}
	if err := writeFiles(c.Files); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("set host name %s: %w", c.Hostname, err)
	}
	if err := setSysctls(c.Sysctls); err != nil {
		return err
	}
	if err := linkUp("lo"); err != nil {
		return err
	}
	return keepAddresses(ctx, c.Addresses, func(err error) { fmt.Fprintln(os.Stderr, err) })
}
