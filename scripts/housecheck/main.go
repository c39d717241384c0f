// Command housecheck holds the rules of this project that no general linter knows:
//
//   - imports point one way (docs/architecture.md, "Where things live");
//   - libraries of the outside world are used where their knowledge belongs, and
//     nowhere else;
//   - nothing but a command ends the process, and nothing but a test sleeps.
//
// It reads the source below the working directory and prints one line for each breach.
package main

import (
	"fmt"
	"os"
)

func main() {
	findings, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "housecheck:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}
