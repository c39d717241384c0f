package main

import "testing"

func TestCheckWords(t *testing.T) {
	root := writeTree(t, map[string]string{
		"netmaster/a.go":      "package a\n\n// The lock guards it; it is held to it.\nvar name = \"seat\"\nvar message = \"no seat for host %s\"\n",
		"netmaster/a_test.go": "package a\n\nvar message = \"no seat for host %s\"\n",
		"docs/a.md":           "A guard is a guard.\nThe safeguard, the seated, the host is down.\nWhile the store is away, nothing changes.\n",
		"docs/glossary.md":    "An endpoint policy was a guard.\n",
	})
	wantFindings(t, root, checkWords,
		`netmaster/a.go:5: "seat": say frontend (of a service), leader state (of a daemon)`,
		`netmaster/a.go:3: "held to": say subject to`,
		`docs/a.md:1: "A guard": say endpoint policy`,
		`docs/a.md:3: "is away": say unavailable, unreachable, down`,
	)
}
