package orphans_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

func TestMain(m *testing.M) {
	if status, played := lab.Play(os.Args); played {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// TestFind shows that what is there is found, and only that.
func TestFind(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	marks, err := orphans.Before(dir)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := marks.Find(); err != nil || len(found) > 0 {
		t.Errorf("found before the lab is up: %v, %v", found, err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	l, err := lab.Up(t.Context(), lab.Config{Dir: dir, Hosts: 1, Bare: true, Init: self, Bin: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := marks.Note(l); err != nil {
		t.Fatal(err)
	}
	found, err := marks.Find()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{"directory " + dir, "host1: ovs-vswitchd", "__init " + dir + " host1", "__init " + dir + " underlay"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among what is found:\n%s", want, all)
		}
	}

	// A namespace that this process holds open outlives the lab.
	held, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", l.Hosts()[0].PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := lab.Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	found, err = marks.Find()
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "open in process") {
		t.Errorf("found after the lab is down: %q, %v; want the open namespace alone", found, err)
	}
	held.Close()
	marks.Check(t)
}
