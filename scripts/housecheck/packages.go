package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// overview is the document that says what each package is for.
const overview = "docs/architecture.md"

// checkPackages returns the packages of two path elements at most (cmd, test and scripts
// excepted) that the overview does not name, in backquotes.
func checkPackages(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, overview))
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var packages []string
	err = eachGoFile(root, func(_, rel string) error {
		dir := path.Dir(rel)
		top, _, _ := strings.Cut(dir, "/")
		if dir != "." && top != "cmd" && !slices.Contains(everywhere, top) && strings.Count(dir, "/") <= 1 && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
		return nil
	})
	var findings []string
	for _, dir := range packages {
		if !strings.Contains(string(text), "`"+dir+"`") {
			findings = append(findings, fmt.Sprintf("%s: package %s is missing: say what it is for", overview, dir))
		}
	}
	return findings, err
}
