package main

import "testing"

func TestCheckDiagrams(t *testing.T) {
	root := writeTree(t, map[string]string{
		"docs/diagrams/current.dot": "digraph {}\n", "docs/diagrams/current.svg": "<svg/>\n<!-- sha256 da1d9b43f8f418dda1a4a479b3209833982f1045e2826b35c71c1520cd2c6598 -->\n",
		"docs/diagrams/stale.dot": "digraph {a}\n", "docs/diagrams/stale.svg": "<svg/>\n<!-- sha256 37b6 -->\n",
		"docs/diagrams/undrawn.dot": "digraph {b}\n",
	})
	wantFindings(t, root, checkDiagrams,
		"docs/diagrams/stale.dot: the drawing is not current: run scripts/diagrams",
		"docs/diagrams/undrawn.dot: the drawing is not current: run scripts/diagrams",
	)
}
