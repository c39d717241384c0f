package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// declaredTest finds the tests of a Go file.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
	// namedTest finds tests and scripts that a document names, as `TestX` or
	// `x.txtar`.
	namedTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*|[\\w.-]+\\.txtar)`")
)

// checkDocs reads the documents (*.md below docs/) of the tree at root and returns, as
// file:line: text, the tests and scripts they name that are nowhere in the tree.
func checkDocs(root string) ([]string, error) {
	known, err := tests(root)
	if err != nil {
		return nil, err
	}
	docs := filepath.Join(root, "docs")
	if _, err := os.Stat(docs); os.IsNotExist(err) {
		return nil, nil
	}
	var findings []string
	err = filepath.WalkDir(docs, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
				if !known[m[1]] {
					findings = append(findings, fmt.Sprintf("%s:%d: there is no %s", filepath.ToSlash(rel), i+1, m[1]))
				}
			}
		}
		return err
	})
	return findings, err
}

// tests returns the names of all test functions and scripts of tests below root.
func tests(root string) (map[string]bool, error) {
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(base, ".") && name != root:
			return filepath.SkipDir
		case strings.HasSuffix(base, ".txtar"):
			known[base] = true
		case strings.HasSuffix(base, "_test.go"):
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range declaredTest.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
		}
		return nil
	})
	return known, err
}
