package appctl_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/ofnet/appctl"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/utils/errs"
)

// The running daemon is found, whatever sockets its predecessors have left.
func TestRealDaemon(t *testing.T) {
	sw := ovstest.Start(t)
	sw.AddBridge("br0")
	leave(t, filepath.Join(sw.RunDir(), "ovs-vswitchd.1.ctl"))
	sw.Restart(syscall.SIGKILL)
	socket, err := appctl.Find(t.Context(), sw.RunDir(), "ovs-vswitchd")
	if err != nil {
		t.Fatal(err)
	}
	out, err := appctl.Call(t.Context(), socket, "ofproto/list")
	if err != nil || !strings.Contains(out, "br0") {
		t.Errorf("ofproto/list: %q, %v", out, err)
	}
	if out, err := appctl.Call(t.Context(), socket, "ofproto/trace", "br9", "ip"); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "br9") {
		t.Errorf("a trace in an unknown bridge: %q, %v", out, err)
	}
	if _, err := appctl.Find(t.Context(), t.TempDir(), "ovs-vswitchd"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("in an empty directory: %v", err)
	}
}

// leave creates a socket that nobody listens on.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// A daemon that does not answer, or answers in a wrong format, is an error.
func TestBadPeers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "no JSON": "hello\n", "null": `{"id":1,"result":null,"error":"no such\nthing"}`, "a list": `{"id":1,"result":[1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("unix", filepath.Join(t.TempDir(), "x.ctl"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				buf := make([]byte, 4096)
				_, _ = c.Read(buf)
				_, _ = c.Write([]byte(answer))
			}()
			if out, err := appctl.Call(t.Context(), l.Addr().String(), "version"); err == nil {
				t.Errorf("got %q", out)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "x.ctl"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cancel()
	if _, err := appctl.Call(ctx, l.Addr().String(), "version"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("at the end of its context: %v", err)
	}
}
