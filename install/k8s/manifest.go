// Package k8s has the manifest that installs Contiv in a cluster of Kubernetes.
package k8s

import (
	_ "embed"
	"slices"
	"strings"
)

// Manifest is contiv.yaml.
//
//go:embed contiv.yaml
var Manifest string

// Only returns the objects of some kinds of the manifest, as one manifest.
func Only(kinds ...string) string {
	var out []string
	for _, doc := range strings.Split(Manifest, "\n---\n") {
		for line := range strings.Lines(doc) {
			if kind, ok := strings.CutPrefix(line, "kind: "); ok && slices.Contains(kinds, strings.TrimSpace(kind)) {
				out = append(out, doc)
			}
		}
	}
	return strings.Join(out, "\n---\n")
}
