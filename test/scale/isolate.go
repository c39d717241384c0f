package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolatedVariable is set in a program that has a network namespace of its own.
const isolatedVariable = "CONTIV_SCALE_ISOLATED"

// isolated runs the program again, in a network namespace of its own in which all addresses of
// hosts are local, so that ports are free. again is false in that namespace.
func isolated(ctx context.Context) (status int, again bool, err error) {
	if os.Getenv(isolatedVariable) != "" {
		return 0, false, localAddresses()
	}
	self, err := os.Executable()
	if err != nil {
		return 1, true, err
	}
	c := exec.CommandContext(ctx, self, os.Args[1:]...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it has to end what it has started
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), isolatedVariable+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	err = c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(1, exit.ExitCode()), true, nil
	}
	if err != nil {
		return 1, true, fmt.Errorf("run %s in a network namespace of its own, which takes root: %w", self, err)
	}
	return 0, true, nil
}

// localAddresses makes every address of hosts one of this network namespace.
func localAddresses() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	all := &netlink.Route{
		LinkIndex: lo.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST,
		Dst: &net.IPNet{IP: net.IPv4(172, 20, 0, 0), Mask: net.CIDRMask(16, 32)},
	}
	if err := netlink.RouteReplace(all); err != nil {
		return fmt.Errorf("make 172.20.0.0/16 local: %w", err)
	}
	return nil
}
