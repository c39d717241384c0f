package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// TestLabGoesWithItsMaker kills the program that has made a lab, as whoever interrupts a
// test does. Nothing is left of the lab, nor of the directory that was made for it.
func TestLabGoesWithItsMaker(t *testing.T) {
	c := bare(t, 2)
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			above, err := os.MkdirTemp("", "killed-*")
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(above, "lab")
			marks, err := orphans.Before(dir)
			if err != nil {
				t.Fatal(err)
			}
			maker := exec.Command(c.Init, holdArg, dir, string(config))
			maker.Stderr = t.Output()
			if _, err := maker.StdinPipe(); err != nil { // held open until it is killed
				t.Fatal(err)
			}
			out, err := maker.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := maker.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
				t.Errorf("the maker says %q, %v", line, err)
			}
			l, err := lab.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := marks.Note(l); err != nil {
				t.Error(err)
			}
			if err := maker.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			_ = maker.Wait() // which tells how it was ended
			gone := func() bool {
				_, err := os.Lstat(above)
				return os.IsNotExist(err)
			}
			t.Cleanup(func() {
				if !t.Failed() {
					return
				}
				if err := lab.Down(context.WithoutCancel(t.Context()), dir); err != nil {
					t.Error(err)
				}
			})
			eventually.True(t, "the lab is taken down", gone)
			marks.Check(t)
		})
	}
}

// TestUntiedLabStays: a keeper that is told so lets a lab be, and so does one whose lab
// has been taken down. Its program may be named relative to where the caller is.
func TestUntiedLabStays(t *testing.T) {
	c := bare(t, 1)
	c.Dir = filepath.Join(t.TempDir(), "lab")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Rel(here, c.Init)
	if err != nil {
		t.Fatal(err)
	}
	untie, err := lab.Tie(program, c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := untie(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("br-ext", on(t, l, "host1", "ovs-vsctl list-br")); diff != "" {
		t.Errorf("bridges of the host (-want +got):\n%s", diff)
	}
	if err := lab.Down(t.Context(), c.Dir); err != nil {
		t.Error(err)
	}
	if _, err := lab.Tie("/no/such/program", c.Dir); err == nil || !strings.Contains(err.Error(), "start the keeper of the lab in "+c.Dir) {
		t.Errorf("without a program to keep it: %v", err)
	}
}
