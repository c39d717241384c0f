package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeTree writes files, by their path, below a new directory.
func writeTree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCheckNames(t *testing.T) {
	root := writeTree(t, map[string]string{
		"cmd/netctl/main.go":  "package main\n\nvar f = Flag{Name: \"tenant\"}\nvar text = \"give --tenant, not --renter\"\nvar other = \"docker run --rm x\"\n",
		"docs/here.md":        "[a](here.md#part), [b](gone.md), [c](https://example.com/x)\n`cmd/netctl/main.go`, `cmd/netplugin`, `text/tabwriter`\n",
		"docs/flags.md":       "`--tenant` and `--renter` and `netctl ls --lodger`\n\n    docker run --rm x\n    netctl ls --tenant blue --guest\n    netctl ls | sed --quiet p\n",
		"docs/decisions/1.md": "[b](gone.md)",
		"test/x.md":           "[b](gone.md)",
	})
	got, err := checkNames(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cmd/netctl/main.go:4: there is no flag --renter",
		"docs/flags.md:1: there is no flag --renter",
		"docs/flags.md:1: there is no flag --lodger",
		"docs/flags.md:4: there is no flag --guest",
		"docs/here.md:1: there is no gone.md",
		"docs/here.md:2: there is no cmd/netplugin",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestFilesAndFlagsExist checks the documents and messages of this project.
func TestFilesAndFlagsExist(t *testing.T) {
	findings, err := checkNames("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
