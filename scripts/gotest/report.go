package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // instead of Package, for what the compiler says
	Test        string
	Output      string
	FailedBuild string
}

type test struct{ pkg, name string }

// report turns events into the text for the reader and the counts.
type report struct {
	out                     io.Writer
	output                  map[test][]string // of tests that have not ended, and of packages (name "")
	passed, failed, skipped int
	failing                 []string
}

func newReport(out io.Writer) *report { return &report{out: out, output: map[test][]string{}} }

func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.add(e)
			} else {
				fmt.Fprintf(r.out, "%s", line) // not an event: go test itself has something to say
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *report) add(e event) {
	id := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[id] = append(r.output[id], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.packageEnd(e)
		} else {
			r.testEnd(e, id)
		}
	}
}

func (r *report) testEnd(e event, id test) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
	case "fail":
		r.failed++
		r.failing = append(r.failing, e.Package+" "+e.Test)
		fmt.Fprint(r.out, strings.Join(r.output[id], ""))
	}
	delete(r.output, id)
}

// packageEnd prints the package's own line. A package that fails without a failing
// test did not build, or died: that counts as one failure, and tests cut short show
// what they had said.
func (r *report) packageEnd(e event) {
	id := test{pkg: e.Package}
	ofPackage := func(f string) bool { return strings.HasPrefix(f, e.Package+" ") }
	if e.Action == "fail" && !slices.ContainsFunc(r.failing, ofPackage) {
		r.failed++
		r.failing = append(r.failing, e.Package)
		for other, output := range r.output {
			if other.pkg == e.Package && other.name != "" {
				fmt.Fprint(r.out, strings.Join(output, ""))
			}
		}
	}
	lines := r.output[id]
	if e.Action != "fail" { // go test without -v prints the closing line alone
		lines = lines[max(0, len(lines)-1):]
	}
	fmt.Fprint(r.out, strings.Join(lines, ""))
	for other := range r.output {
		if other.pkg == e.Package {
			delete(r.output, other)
		}
	}
}

func (r *report) close() {
	for _, f := range r.failing {
		fmt.Fprintln(r.out, "failed:", f)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
