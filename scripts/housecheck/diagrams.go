package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkDiagrams returns the drawings below docs/diagrams that scripts/diagrams has not
// drawn from their texts as these are now.
func checkDiagrams(root string) (findings []string, err error) {
	texts, err := filepath.Glob(filepath.Join(root, "docs", "diagrams", "*.dot"))
	if err != nil {
		return nil, err
	}
	for _, name := range texts {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		svg, err := os.ReadFile(strings.TrimSuffix(name, ".dot") + ".svg")
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if sum := fmt.Sprintf("<!-- sha256 %x -->", sha256.Sum256(text)); !bytes.Contains(svg, []byte(sum)) {
			findings = append(findings, fmt.Sprintf("docs/diagrams/%s: the drawing is not current: run scripts/diagrams", filepath.Base(name)))
		}
	}
	return findings, nil
}
