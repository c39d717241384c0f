package ofnet

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var howToBlock = regexp.MustCompile("(?ms)^```(go|diff) (\\S+)\n(.*?)^```$")

// TestHowToAddAFeature follows docs/howto/add-a-feature.md: the code there, put over that of
// the package, compiles and does what it says. It touches as few files as it says, too.
func TestHowToAddAFeature(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "howto", "add-a-feature.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	touched := 0
	for _, block := range howToBlock.FindAllStringSubmatch(string(text), -1) {
		kind, name, content := block[1], block[2], block[3]
		if kind == "diff" {
			content = patched(t, filepath.Join(root, name), content)
		} else if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Fatalf("%s is there already", name)
		}
		if !strings.HasSuffix(name, "_test.go") {
			touched++
		}
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = path
	}
	const driver = 1
	if touched+driver > 5 || touched < 4 {
		t.Errorf("a feature touches %d files, and one of the driver's; 5 was the aim", touched)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", path, "-run", "^(TestMirror|TestFlowsAreUnique|TestRegistersHoldTheirValues)$", "-v", "./ofnet")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestMirror") {
		t.Errorf("%v\n%s", err, out)
	}
}

// patched is a file with changes: lines that begin with a space are there, those with a minus
// go, those with a plus come. @@ parts changes at different places.
func patched(t *testing.T, path, diff string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for hunk := range strings.SplitSeq(diff, "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(hunk) {
			if line[0] != '+' {
				before.WriteString(line[1:])
			}
			if line[0] != '-' {
				after.WriteString(line[1:])
			}
		}
		if n := strings.Count(text, before.String()); n != 1 {
			t.Fatalf("%s has %d times, expected once:\n%s", path, n, before.String())
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
	}
	return text
}
