package systemtests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/leftovers"
)

// TestDemo runs the demo twice in a row, as a new user does, and removes it.
func TestDemo(t *testing.T) {
	labtest.Bin(t)
	dir := filepath.Join(t.TempDir(), "demo")
	marks, err := leftovers.Before(dir)
	if err != nil {
		t.Fatal(err)
	}
	demo := func(args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "scripts/demo"), args...)
		cmd.Env = append(os.Environ(), "DEMO_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("demo %v: %v\n%s", args, err, out)
		} else if len(args) == 0 && !strings.Contains(string(out), "the lab is up") {
			t.Errorf("the demo does not say that it is done:\n%s", out)
		}
	}
	t.Cleanup(func() {
		demo("down")
		marks.Check(t)
	})
	demo()
	demo()
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := marks.Note(l); err != nil {
		t.Error(err)
	}
}
