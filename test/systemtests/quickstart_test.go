package systemtests

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// TestQuickstart types what docs/quickstart.md says.
func TestQuickstart(t *testing.T) { typePage(t, "docs/quickstart.md") }

// TestDockerQuickstart types what docs/docker.md says.
func TestDockerQuickstart(t *testing.T) { typePage(t, "docs/docker.md") }

// typePage types the commands of a page, line by line. Every one must succeed.
func typePage(t *testing.T, name string) {
	t.Helper()
	page, p := readDocument(t, name), newTypist(t)
	typed := 0
	for _, line := range commands(page) {
		if out, err := p.run(line); err != nil {
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
