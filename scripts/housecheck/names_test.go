package main

import "testing"

func TestCheckNames(t *testing.T) {
	root := writeTree(t, map[string]string{
		"cmd/netctl/main.go":  "package main\n\nvar f = Flag{Name: \"tenant\"}\nvar text = \"give --tenant, not --renter\"\nvar other = \"docker run --rm x\"\n",
		"docs/here.md":        "[a](here.md#part), [b](gone.md), [c](https://example.com/x)\n`cmd/netctl/main.go`, `cmd/netplugin`, `text/tabwriter`\n",
		"docs/flags.md":       "`--tenant` and `--renter` and `netctl ls --lodger`\n\n    docker run --rm x\n    netctl ls --tenant blue --guest\n    netctl ls | sed --quiet p\n",
		"docs/decisions/1.md": "[b](gone.md)",
		"test/x.md":           "[b](gone.md)",
	})
	wantFindings(t, root, checkNames,
		"cmd/netctl/main.go:4: there is no flag --renter",
		"docs/flags.md:1: there is no flag --renter",
		"docs/flags.md:1: there is no flag --lodger",
		"docs/flags.md:4: there is no flag --guest",
		"docs/here.md:1: there is no gone.md",
		"docs/here.md:2: there is no cmd/netplugin",
	)
}
