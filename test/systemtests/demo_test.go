package systemtests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// TestDemo runs the demo as a new user does: with docker containers, then again, over what
// is there, without an Engine. It removes it.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	labtest.Tie(t, filepath.Join(labtest.Bin(t), "contiv-lab"), dir)
	marks, err := orphans.Before(dir)
	if err != nil {
		t.Fatal(err)
	}
	demo := func(engine string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "scripts/demo"), args...)
		cmd.Env = append(os.Environ(), "DEMO_DIR="+dir, "DEMO_DOCKER="+engine)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("demo %v: %v\n%s", args, err, out)
		} else if len(args) == 0 && !strings.Contains(string(out), "the lab is up") {
			t.Errorf("the demo does not say that it is done:\n%s", out)
		}
		return string(out)
	}
	t.Cleanup(func() {
		demo("", "down")
		marks.Check(t)
	})
	if out := demo(""); !strings.Contains(out, "docker exec web ping -c 3 -i 0.2 -W 2 db\n     3 packets") {
		t.Errorf("no container pings another one by name:\n%s", out)
	}
	if out := demo("none"); !strings.Contains(out, "attach host1 web --network contiv-net") {
		t.Errorf("without an Engine no container is attached:\n%s", out)
	}
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := marks.Note(l); err != nil {
		t.Error(err)
	}
}
