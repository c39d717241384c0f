package ovsd

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDatapathDefectTable checks that every test docs/defects-datapath.md names exists.
func TestDatapathDefectTable(t *testing.T) {
	root := os.DirFS("../..")
	table, err := fs.ReadFile(root, "docs/defects-datapath.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	for _, dir := range []string{"cmd", "drivers", "libopenflow", "mgmtfn", "netplugin", "ofnet", "ovsdb", "test"} {
		err := fs.WalkDir(root, dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)`").FindAllSubmatch(table, -1)
	if len(named) < 10 {
		t.Errorf("the table names %d tests", len(named))
	}
	for _, m := range named {
		if !known[string(m[1])] {
			t.Errorf("there is no %s", m[1])
		}
	}
}
