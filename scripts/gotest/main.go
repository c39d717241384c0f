// Command gotest runs go test and closes with one line that says how it went:
//
//	812 passed, 0 failed, 0 skipped
//
// Before that it prints what go test prints without -v: a line for each package, and
// the output of tests that failed. Its arguments are those of go test; its exit status
// is that of go test.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	r := newReport(os.Stdout)
	readErr := r.read(events)
	err = cmd.Wait()
	r.close()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(1, exit.ExitCode())
	case err != nil || readErr != nil:
		fmt.Fprintln(os.Stderr, "gotest:", errors.Join(err, readErr))
		return 1
	case r.failed > 0:
		return 1
	}
	return 0
}
