// Command housecheck holds the rules of this project that no general linter knows:
//
//   - imports point one way (docs/architecture.md, "Where things live");
//   - libraries of the outside world are used where their knowledge belongs, and
//     nowhere else;
//   - nothing but a command ends the process, and nothing but a test sleeps;
//   - broadcasts, waits between attempts and lists of the kernel's are made by the packages
//     that make them well;
//   - tests, files and flags that documents and messages name exist;
//   - drawings are those of their texts;
//   - messages and documents use the words of docs/glossary.md.
//
// It reads the source and documents below the working directory and prints one line for each breach.
package main

import (
	"fmt"
	"os"
)

// rules are all rules: each check reads the tree at root and returns what breaks the rule,
// one line each.
var rules = []struct {
	name  string
	check func(root string) (findings []string, err error)
}{
	{"code", checkCode},
	{"tests that documents name", checkDocs},
	{"files and flags", checkNames},
	{"diagrams", checkDiagrams},
	{"packages", checkPackages},
	{"words", checkWords},
}

func main() {
	breaches := 0
	for _, rule := range rules {
		findings, err := rule.check(".")
		if err != nil {
			fmt.Fprintln(os.Stderr, "housecheck:", err)
			os.Exit(2)
		}
		for _, f := range findings {
			fmt.Println(f)
		}
		breaches += len(findings)
	}
	if breaches > 0 {
		os.Exit(1)
	}
}
