package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/nodesetup"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
)

// preflight prints what it finds and fails when something is amiss.
func preflight(ctx context.Context, o *options, w io.Writer) error {
	if err := o.validateHost(ctx); err != nil {
		return err
	}
	findings := ovsd.Preflight(ctx, ovsd.Config{
		OVSDB: o.ovsdb, Datapath: o.datapath, VTEP: o.vtepIP, CtrlIP: o.ctrlIP, VXLANPort: uint16(o.vxlanPort), Uplinks: o.uplinks, Takeover: o.takeover,
	})
	for _, port := range []int{9002, 9003, 9090} {
		findings = append(findings, ovsd.CheckTCPPort(port))
	}
	bad := 0
	for _, f := range findings {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
			bad++
		}
		fmt.Fprintf(w, "%s  %-16s %s\n", mark, f.What, f.Detail)
	}
	if bad > 0 {
		return fmt.Errorf("%d checks failed", bad)
	}
	return nil
}

// cleanup removes what netplugin made. A running netplugin would make it again.
func cleanup(ctx context.Context, o *options, dryRun bool, w io.Writer) error {
	sockets := []string{cniapi.DefaultSocket, mesosapi.DefaultSocket}
	for _, path := range sockets {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			if !dryRun {
				return errors.New("netplugin is running on this host; stop it first")
			}
		}
	}
	if o.vxlanPort < 1 || o.vxlanPort > 65535 {
		return errors.New("--vxlan-port " + strconv.Itoa(o.vxlanPort) + ": expected 1 to 65535")
	}
	verb := "removed"
	if dryRun {
		verb = "would remove"
	}
	if err := o.docker.cleanup(ctx, dryRun, func(what string) { fmt.Fprintln(w, verb, what) }); err != nil {
		return err
	}
	if err := ovsd.Cleanup(ctx, ovsd.Config{OVSDB: o.ovsdb, Datapath: o.datapath}, dryRun, func(what string) {
		fmt.Fprintln(w, verb, what)
	}); err != nil {
		return err
	}
	if !dryRun {
		for _, path := range sockets {
			_ = os.Remove(path)
		}
	}
	return nodesetup.Remove(o.kube.confDir, o.kube.binDir, dryRun, func(path string) { fmt.Fprintln(w, verb, path) })
}
