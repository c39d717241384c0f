package systemtests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/test/systemtests/orphans"
)

// typist types the commands of a document, which bring up a lab of their own.
type typist struct {
	binary, dir string
}

// newTypist removes what was typed when the test ends, and sees that nothing is left.
func newTypist(t *testing.T) typist {
	t.Helper()
	p := typist{binary: filepath.Join(labtest.Bin(t), "contiv-lab"), dir: filepath.Join(t.TempDir(), "lab")}
	labtest.Tie(t, p.binary, p.dir)
	marks, err := orphans.Before(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), p.dir); err != nil {
			t.Error(err)
		}
		marks.Check(t)
	})
	return p
}

// run runs a line of a document in a shell; out is all that it prints.
func (p typist) run(line string) (out string, err error) {
	script := `lab() { "$LAB" --dir "$DIR" "$@"; }; netctl() { lab netctl "$@"; }; ` + line
	cmd := exec.Command("bash", "-ec", script)
	cmd.Env = append(os.Environ(), "LAB="+p.binary, "DIR="+p.dir)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// readDocument reads a document of this tree.
func readDocument(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
