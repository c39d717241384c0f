// Package howto follows the pages of this folder: it applies what they say to a copy of
// the files concerned and runs the tests that they end with.
package howto

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddAnObject and TestAddAField follow their pages.
func TestAddAnObject(t *testing.T) {
	follow(t, "add-an-object.md", "TestMirror", "./netmaster/api", "./cmd/netctl/internal/commands")
}

func TestAddAField(t *testing.T) {
	follow(t, "add-a-field.md", "TestMark", "./netmaster/api", "./netplugin/agent", "./cmd/netctl/internal/commands")
}

// TestAddAFeature follows its page, which touches five files.
func TestAddAFeature(t *testing.T) {
	follow(t, "add-a-feature.md", "TestMirror", "./ofnet")
	text, err := os.ReadFile("add-a-feature.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, b := range blocks(string(text)) {
		if !strings.HasSuffix(b.file, "_test.go") {
			files[b.file] = true
		}
	}
	if len(files) != 5 {
		t.Errorf("the page touches %v, expected 5 files", files)
	}
}

// follow applies the code blocks of a page, and runs a test in each of the packages. The
// tree itself stays as it is: the compiler gets the other files by an overlay.
func follow(t *testing.T, page, test string, packages ...string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{} // by path from the root
	for _, b := range blocks(string(text)) {
		old, known := files[b.file]
		if !known && b.diff {
			content, err := os.ReadFile(filepath.Join(root, b.file))
			if err != nil {
				t.Fatal(err)
			}
			old = string(content)
		}
		files[b.file] = b.text
		if b.diff {
			if files[b.file], err = apply(old, b.text); err != nil {
				t.Fatalf("%s: the change of %s does not apply: %v", page, b.file, err)
			}
		} else if _, err := os.Stat(filepath.Join(root, b.file)); err == nil {
			t.Errorf("%s: %s is there already", page, b.file)
		}
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, content := range files {
		at := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, file)] = at
	}
	spec, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(at, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-overlay", at, "-vet=off", "-count=1", "-v", "-run", "^" + test + "$"}, packages...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if ran := strings.Count(string(out), "--- PASS: "+test+" "); err != nil || ran != len(packages) {
		t.Errorf("%s passed in %d of %d packages (%v):\n%s", test, ran, len(packages), err, out)
	}
}

// block is a file of a page, or a change of one.
type block struct {
	file, text string
	diff       bool
}

// blocks finds the code blocks whose first line names a file: "```go FILE" and
// "```diff FILE".
func blocks(page string) []block {
	var all []block
	for part := range strings.SplitSeq(page, "\n```") {
		head, text, _ := strings.Cut(part, "\n")
		kind, file, ok := strings.Cut(head, " ")
		if ok && (kind == "go" || kind == "diff") {
			all = append(all, block{file: file, text: text + "\n", diff: kind == "diff"})
		}
	}
	return all
}

// apply makes a change: what begins with a blank or a minus must stand in the text, once
// and in one piece; it becomes what begins with a blank or a plus.
func apply(text, change string) (string, error) {
	var before, after strings.Builder
	for line := range strings.Lines(change) {
		switch {
		case strings.HasPrefix(line, " "):
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		}
	}
	if n := strings.Count(text, before.String()); n != 1 {
		return "", fmt.Errorf("expected once, found %d times:\n%s", n, before.String())
	}
	return strings.Replace(text, before.String(), after.String(), 1), nil
}
