package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckDiagrams(t *testing.T) {
	root := writeTree(t, map[string]string{
		"docs/diagrams/current.dot": "digraph {}\n", "docs/diagrams/current.svg": "<svg/>\n<!-- sha256 da1d9b43f8f418dda1a4a479b3209833982f1045e2826b35c71c1520cd2c6598 -->\n",
		"docs/diagrams/stale.dot": "digraph {a}\n", "docs/diagrams/stale.svg": "<svg/>\n<!-- sha256 37b6 -->\n",
		"docs/diagrams/undrawn.dot": "digraph {b}\n",
	})
	got, err := checkDiagrams(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/diagrams/stale.dot: the drawing is not current: run scripts/diagrams",
		"docs/diagrams/undrawn.dot: the drawing is not current: run scripts/diagrams",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestDiagramsAreCurrent checks the drawings of this project.
func TestDiagramsAreCurrent(t *testing.T) {
	findings, err := checkDiagrams("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
