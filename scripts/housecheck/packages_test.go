package main

import "testing"

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
	wantFindings(t, root, checkPackages,
		"docs/architecture.md: package ofnet is missing: say what it is for",
		"docs/architecture.md: package utils/new is missing: say what it is for",
	)
}
