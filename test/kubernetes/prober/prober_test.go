package prober_test

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/kubernetes/prober"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// patience only bounds a test that has failed.
const patience = time.Minute

// server is a running Server.
type server struct {
	*prober.Client
	at  netip.AddrPort
	cmd *exec.Cmd
}

func start(t *testing.T, program, name string, first ...prober.Target) server {
	t.Helper()
	port, err := strconv.ParseUint(netxtest.FreePort(t), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	args := prober.Command(program, name, socket, []int{int(port)}, first...)
	s := server{at: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), cmd: exec.Command(args[0], args[1:]...)}
	s.cmd.Stderr = t.Output()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	eventually.Succeeds(t, "the prober answers", func() (err error) { s.Client, err = prober.Dial(socket); return err })
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestProber(t *testing.T) {
	program := filepath.Join(t.TempDir(), "prober")
	if err := prober.Build(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	b := start(t, program, "b")
	a := start(t, program, "a", prober.Target{Proto: prober.TCP, To: b.at})
	if name, err := a.First(t.Context()); err != nil || name != "b" {
		t.Errorf("the first target answers %q, %v", name, err)
	}
	targets := []prober.Target{
		{Proto: prober.TCP, To: b.at},
		{Proto: prober.UDP, To: b.at},
		{Proto: prober.ICMP, To: b.at},
		{Proto: prober.TCP, To: netip.AddrPortFrom(netip.IPv6Loopback(), b.at.Port())},
		{Proto: prober.UDP, To: netip.AddrPortFrom(netip.IPv6Loopback(), b.at.Port())},
		{Proto: prober.ICMP, To: netip.AddrPortFrom(netip.IPv6Loopback(), 0)},
	}
	names, err := a.Ask(t.Context(), targets, patience)
	if want := []string{"b", "b", prober.ICMPAnswer, "b", "b", prober.ICMPAnswer}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v answer %q, %v; expected %q", targets, names, err, want)
	}
	n, err := a.Open(t.Context(), b.at, patience)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		if back, err := a.Echo(t.Context(), n, word, patience); !back || err != nil {
			t.Errorf("%s came back: %t, %v", word, back, err)
		}
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Wait()
	if names, err := a.Ask(t.Context(), targets[:2], time.Second); err != nil || !slices.Equal(names, []string{"", ""}) {
		t.Errorf("without b, %q answer, %v", names, err)
	}
	if back, err := a.Echo(t.Context(), n, "three", patience); back || err != nil {
		t.Errorf("without b, a word came back: %t, %v", back, err)
	}
}
