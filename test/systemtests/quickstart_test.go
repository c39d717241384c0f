package systemtests

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// TestQuickstart types what docs/quickstart.md says.
func TestQuickstart(t *testing.T) { typePage(t, "docs/quickstart.md") }

// TestDockerQuickstart types what docs/docker.md says.
func TestDockerQuickstart(t *testing.T) { typePage(t, "docs/docker.md") }

// typePage types the commands of a page, line by line. Every one must succeed.
func typePage(t *testing.T, name string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	labtest.Tie(t, filepath.Join(labtest.Bin(t), "contiv-lab"), dir)
	marks, err := orphans.Before(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), dir); err != nil {
			t.Error(err)
		}
		marks.Check(t)
	})
	binary := filepath.Join(labtest.Bin(t), "contiv-lab")
	typed := 0
	for _, line := range commands(page) {
		script := `lab() { "$LAB" --dir "$DIR" "$@"; }; netctl() { lab netctl "$@"; }; ` + line
		cmd := exec.Command("bash", "-ec", script)
		cmd.Env = append(os.Environ(), "LAB="+binary, "DIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		typed++
	}
	if typed < 20 {
		t.Errorf("found %d commands in the page, expected it to have more", typed)
	}
}

var command = regexp.MustCompile(`(?m)^    (?:bin/contiv-lab|lab|netctl) .+$`)

// commands are the indented lines of a page that call the lab or netctl, without what
// needs a second terminal.
func commands(page []byte) []string {
	var all []string
	for _, m := range command.FindAll(page, -1) {
		line := string(bytes.TrimSpace(m))
		line = strings.Replace(line, "bin/contiv-lab", "lab", 1)
		line, _, _ = strings.Cut(line, " #")
		if !strings.Contains(line, "tcpdump") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
