package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestCheckDocs(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/a_test.go":        "package a\n\nfunc TestOne(t *testing.T) {}\nfunc FuzzTwo(f *testing.F) {}\n// func TestNot(t\n",
		"a/helpers.go":       "package a\n\nfunc TestHelper(t *testing.T) {}\n",
		"a/testdata/s.txtar": "",
		".hidden/b_test.go":  "package b\n\nfunc TestHidden(t *testing.T) {}\n",
		"docs/good.md":       "`TestOne`, `FuzzTwo` and `s.txtar`; TestProse and `Testing` are no names of tests",
		"docs/more/bad.md":   "first\n`TestOne`, `TestNot`\n`BenchmarkNot`, `TestHelper`, `TestHidden`, `t.txtar`\n",
		"README.md":          "`TestElsewhere`",
	})
	wantFindings(t, root, checkDocs,
		"docs/more/bad.md:2: there is no TestNot",
		"docs/more/bad.md:3: there is no BenchmarkNot",
		"docs/more/bad.md:3: there is no TestHelper",
		"docs/more/bad.md:3: there is no TestHidden",
		"docs/more/bad.md:3: there is no t.txtar",
	)
}

// TestDefectsAreAllListed checks that the tables have a row for every number.
func TestDefectsAreAllListed(t *testing.T) {
	number := regexp.MustCompile(`[A-Z]?-?\d+`)
	for _, c := range []struct {
		file, section, prefix string
		first, last           int
	}{
		{"defects-control-plane.md", "Object model", "", 1, 27},
		{"defects-control-plane.md", "netmaster", "", 1, 35},
		{"defects-control-plane.md", "netctl", "", 1, 20},
		{"defects-docker.md", "", "", 1, 29},
		{"defects-mesos.md", "", "M", 1, 22},
		{"defects-datapath.md", "", "P-", 1, 26},
		{"defects-datapath.md", "", "D-", 1, 32},
	} {
		text, err := os.ReadFile("../../docs/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		listed, section := map[string]bool{}, ""
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "## "); ok {
				section = strings.TrimSpace(name)
			}
			if cells := strings.Split(line, "|"); len(cells) > 3 && (c.section == "" || section == c.section) {
				for _, n := range number.FindAllString(cells[1], -1) {
					listed[n] = true
				}
			}
		}
		for i := c.first; i <= c.last; i++ {
			if n := c.prefix + strconv.Itoa(i); !listed[n] {
				t.Errorf("%s, %s: no row for %s", c.file, c.section, n)
			}
		}
	}
}
