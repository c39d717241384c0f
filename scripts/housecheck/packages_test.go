package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckPackages(t *testing.T) {
	root := writeTree(t, map[string]string{
		"docs/architecture.md":   "| `state` | records |\n| `ofnet/ofctrl` | the channel |\n",
		"state/a.go":             "package state\n",
		"ofnet/ofctrl/a.go":      "package ofctrl\n",
		"ofnet/a.go":             "package ofnet\n",
		"ofnet/ofctrl/peer/a.go": "package peer\n",
		"utils/new/a.go":         "package new\n",
		"test/lab/a.go":          "package lab\n",
		"cmd/netctl/main.go":     "package main\n",
	})
	got, err := checkPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/architecture.md: package ofnet is missing: say what it is for",
		"docs/architecture.md: package utils/new is missing: say what it is for",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestPackagesAreListed checks the overview of this project.
func TestPackagesAreListed(t *testing.T) {
	findings, err := checkPackages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
