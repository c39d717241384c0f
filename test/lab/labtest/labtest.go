// Package labtest brings labs up in tests and sees that they go without a trace.
package labtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// binEnv names the directory of binaries that were built already.
const binEnv = "CONTIV_BIN"

// ovsEnv names the directory of another Open vSwitch, which scripts/ovs prints.
const ovsEnv = "CONTIV_OVS"

// datapathEnv is lab.Config.Datapath of labs whose tests do not choose it.
const datapathEnv = "CONTIV_TEST_DATAPATH"

// Up brings up a lab for a test, with the binaries of the source at hand, in a
// directory of its own. When the test ends the lab is taken down, and the test fails
// if anything is left of it. If the test has failed it shows what the daemons had to
// say.
func Up(t testing.TB, c lab.Config) *lab.Lab {
	t.Helper()
	if c.Bin == "" {
		c.Bin = Bin(t)
	}
	return UpFrom(t, c)
}

// UpFrom is Up with the binaries of c.Bin.
func UpFrom(t testing.TB, c lab.Config) *lab.Lab {
	t.Helper()
	if c.OVS == "" {
		c.OVS = os.Getenv(ovsEnv)
	}
	if c.Datapath == "" {
		c.Datapath = os.Getenv(datapathEnv)
	}
	if c.Timeout == 0 {
		c.Timeout = eventually.Scaled(c.DefaultTimeout())
	}
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "lab")
	}
	marks, err := orphans.Before(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	Tie(t, cmp.Or(c.Init, filepath.Join(c.Bin, "contiv-lab")), c.Dir)
	t.Cleanup(func() {
		if l, err := lab.Open(c.Dir); err == nil {
			if err := marks.Note(l); err != nil {
				t.Logf("note the namespaces of the lab: %v", err)
			}
			checkCrashes(t, l)
			if t.Failed() {
				showLogs(t, l)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), eventually.Scaled(time.Minute))
		defer cancel()
		if err := lab.Down(ctx, c.Dir); err != nil {
			t.Errorf("take the lab down: %v", err)
		}
		marks.Check(t)
	})
	if _, bench := t.(*testing.B); !bench { // whose output is a table
		c.Progress = t.Output()
	}
	l, err := lab.Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Tie has a lab in dir taken down when the test's process is ended from outside and can
// do so no more. init is what lab.Config.Init is.
func Tie(t testing.TB, init, dir string) {
	t.Helper()
	untie, err := lab.Tie(init, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := untie(); err != nil {
			t.Error(err)
		}
	})
}

// checkCrashes fails the test if a daemon has crashed that was started again: the switch
// above all.
func checkCrashes(t testing.TB, l *lab.Lab) {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Scaled(time.Minute))
	defer cancel()
	all, err := l.Status(ctx)
	if err != nil {
		t.Logf("ask the hosts of the lab how their daemons are: %v", err)
		return
	}
	for _, h := range all {
		for _, d := range h.Daemons {
			if d.Crash != "" {
				t.Errorf("%s of %s has crashed: %s", d.Name, h.Name, d.Crash)
			}
		}
	}
}

// showLogs prints the end of every daemon's log.
func showLogs(t testing.TB, l *lab.Lab) {
	for _, h := range l.Hosts() {
		for _, daemon := range h.Daemons() {
			t.Logf("%s, %s: %s", h.Name, daemon, h.LogTail(daemon))
		}
	}
	for _, r := range l.Routers() {
		for _, daemon := range r.Logs() {
			t.Logf("%s, %s: %s", r.Name, daemon, r.LogTail(daemon))
		}
	}
}

// build runs make build once for all tests of a package.
var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		return dir, nil
	}
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(string(gomod))
	// Tests of several packages may get here at once.
	lock, err := os.Open(filepath.Join(root, "Makefile"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if out, err := exec.Command("make", "-s", "-C", root, "build").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return filepath.Join(root, "bin"), nil
})

// Bin returns the directory of the binaries: the one CONTIV_BIN names, else that of
// make build, which it runs first.
func Bin(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
