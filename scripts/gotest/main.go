// Command gotest runs go test and closes with one line that says how it went:
//
//	812 passed, 0 failed, 0 skipped
//
// Before that it prints what go test prints without -v: a line for each package, and
// the output of tests that failed.
//
//	gotest [-alone PART] [FLAGS OF GO TEST] PACKAGES
//
// Packages whose import path contains PART run after all others, one at a time: tests of
// live traffic must not compete for the processors. The exit status is that of go test.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	alone := ""
	if len(args) > 1 && args[0] == "-alone" {
		alone, args = args[1], args[2:]
	}
	flags, packages := split(args)
	shared, separate, err := partition(packages, alone)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	r := newReport(os.Stdout)
	status := 0
	if len(shared) > 0 {
		status = max(status, goTest(r, append(flags, shared...)))
	}
	if len(separate) > 0 {
		status = max(status, goTest(r, append(append(flags, "-p", "1"), separate...)))
	}
	r.close()
	if r.failed > 0 {
		return max(1, status)
	}
	return status
}

// split tells the packages, which come last, from the flags.
func split(args []string) (flags, packages []string) {
	for i := len(args); i > 0; i-- {
		if a := args[i-1]; strings.HasPrefix(a, "-") || i > 1 && strings.HasPrefix(args[i-2], "-") && !strings.ContainsAny(a, "./") {
			return args[:i:i], args[i:]
		}
	}
	return nil, args
}

// partition lists the packages; those whose path contains part are to run separately.
func partition(patterns []string, part string) (shared, separate []string, err error) {
	if part == "" {
		return patterns, nil, nil
	}
	out, err := exec.Command("go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list the packages %s: %w", strings.Join(patterns, " "), err)
	}
	for _, path := range strings.Fields(string(out)) {
		if strings.Contains(path, part) {
			separate = append(separate, path)
		} else {
			shared = append(shared, path)
		}
	}
	return shared, separate, nil
}

// goTest runs go test once and adds its results to the report.
func goTest(r *report, args []string) int {
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
	readErr := r.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(1, exit.ExitCode())
	case err != nil || readErr != nil:
		fmt.Fprintln(os.Stderr, "gotest:", errors.Join(err, readErr))
		return 1
	}
	return 0
}
