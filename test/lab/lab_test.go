package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/systemtests/orphans"
	"github.com/contiv/netplugin/utils/errs"
)

func TestConfig(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*lab.Config)
		want   string // part of the error
	}{
		{"too many hosts", func(c *lab.Config) { c.Hosts = 100 }, "hosts 100: expected 1 to 99"},
		{"no hosts", func(c *lab.Config) { c.Hosts = -1 }, "hosts -1"},
		{"more masters than hosts", func(c *lab.Config) { c.Masters = 4 }, "masters 4: expected 1 to 3"},
		{"netmode", func(c *lab.Config) { c.NetMode = "gre" }, `netmode "gre": expected vxlan or vlan`},
		{"fwdmode", func(c *lab.Config) { c.FwdMode = "nat" }, `fwdmode "nat": expected routing or bridge`},
		{"vxlan bridge", func(c *lab.Config) { c.FwdMode = "bridge" }, "fwdmode bridge cannot be used with netmode vxlan"},
		{"store", func(c *lab.Config) { c.Store = "redis" }, `store "redis": expected embedded, etcd or consul`},
		{"no directory", func(c *lab.Config) { c.Dir = "" }, "needs a directory"},
		{"no binaries", func(c *lab.Config) { c.Bare = false }, "netmaster is missing: run make build"},
		{"no init", func(c *lab.Config) { c.Init = "" }, "contiv-lab is missing: run make build"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "lab")
			c := lab.Config{Dir: dir, Hosts: 3, Bare: true, Init: self, Bin: t.TempDir()}
			tt.change(&c)
			_, err := lab.Up(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a directory was made all the same")
			}
		})
	}
}

func TestDirectory(t *testing.T) {
	t.Run("of something else", func(t *testing.T) {
		c := bare(t, 1)
		c.Dir = t.TempDir()
		precious := filepath.Join(c.Dir, "precious")
		if err := os.WriteFile(precious, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lab.Up(t.Context(), c); !errs.Is(err, errs.Invalid) {
			t.Errorf("Up in a directory with other files = %v, want kind invalid", err)
		}
		if err := lab.Down(t.Context(), c.Dir); err != nil {
			t.Errorf("Down: %v", err)
		}
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("Down removed what is not its own: %v", err)
		}
	})
	t.Run("taken", func(t *testing.T) {
		l := upBare(t, 1)
		c := bare(t, 1)
		c.Dir = l.Config().Dir
		if _, err := lab.Up(t.Context(), c); !errs.Is(err, errs.Exists) {
			t.Errorf("second Up = %v, want kind exists", err)
		}
		on(t, l, "host1", "true")
	})
	t.Run("empty", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		if _, err := lab.Open(dir); !errs.Is(err, errs.NotFound) {
			t.Errorf("Open = %v, want kind not found", err)
		}
		if err := lab.Down(t.Context(), dir); err != nil {
			t.Errorf("Down of no lab = %v", err)
		}
	})
}

func TestLabsDoNotMeet(t *testing.T) {
	t.Parallel()
	one, two := upBare(t, 1), upBare(t, 1)
	on(t, one, "host1", "ip address add 192.168.2.99/24 dev eth0")
	if out, err := two.Output(t.Context(), "host1", "ping", "-c1", "-W1", "192.168.2.99"); err == nil {
		t.Errorf("a host of one lab answers to the other:\n%s", out)
	}
	if err := lab.Down(t.Context(), one.Config().Dir); err != nil {
		t.Fatal(err)
	}
	on(t, two, "host1", "ovs-vsctl list-br")
}

// TestDownAfterCrash kills the program that brings a lab up after increasing times.
func TestDownAfterCrash(t *testing.T) {
	c := bare(t, 3)
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{1, 5, 10, 20, 40, 60, 90, 120, 160, 200, 300} {
		after *= time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "lab")
			marks, err := orphans.Before(dir)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(c.Init, upArg, dir, string(config))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			// It was killed, or had ended: either is what this test is about.
			_ = cmd.Wait()
			if err := lab.Down(t.Context(), dir); err != nil {
				t.Errorf("Down: %v", err)
			}
			marks.Check(t)
			if err := lab.Down(t.Context(), dir); err != nil {
				t.Errorf("second Down: %v", err)
			}
		})
	}
}

func TestHostThatDied(t *testing.T) {
	t.Parallel()
	l := upBare(t, 2)
	if err := syscall.Kill(l.Hosts()[1].PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var again *lab.Lab
	var status []lab.HostStatus
	eventually.Succeeds(t, "host2 does not run", func() (err error) {
		if again, err = lab.Open(l.Config().Dir); err != nil {
			return err
		}
		if status, err = again.Status(t.Context()); err == nil && status[1].Running {
			err = fmt.Errorf("status = %+v", status)
		}
		return err
	})
	if !status[0].Running || len(status[0].Daemons) != 2 {
		t.Errorf("status of host1 = %+v, want it running with two daemons", status[0])
	}
	if _, err := again.Output(t.Context(), "host2", "true"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("command on a dead host = %v, want kind unavailable", err)
	}
}
