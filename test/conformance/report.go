package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// outcome of a spec.
type outcome int

const (
	passed outcome = iota
	failed
	notRun
	unsupported
)

func (o outcome) String() string {
	return [...]string{"passed", "failed", "cannot run here", "not supported"}[o]
}

// result is how a spec went.
type result struct {
	Spec    string
	Outcome outcome
	Why     string // it failed, or was not run
}

// element of a JUnit report, below a case that has not passed.
type element struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// labels is what a report adds to the name of a spec.
var labels = regexp.MustCompile(` \[sig-[^\]]*\]$`)

// readJUnit returns the specs of a report. Those that were not chosen are left out.
func readJUnit(r io.Reader) ([]result, error) {
	var doc struct {
		Suites []struct {
			Cases []struct {
				Name    string   `xml:"name,attr"`
				Failure *element `xml:"failure"`
				Error   *element `xml:"error"`
				Skipped *element `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("JUnit report: %w", err)
	}
	var all []result
	for _, s := range doc.Suites {
		for _, c := range s.Cases {
			name, isSpec := strings.CutPrefix(c.Name, "[It] ")
			name = labels.ReplaceAllString(name, "")
			switch bad := cmp.Or(c.Failure, c.Error); {
			case bad != nil:
				all = append(all, result{name, failed, cmp.Or(firstLine(bad.Message), firstLine(bad.Text), "without a word")})
			case !isSpec:
			case c.Skipped != nil && c.Skipped.Message == "skipped":
				// Not chosen.
			case c.Skipped != nil:
				all = append(all, result{name, notRun, strings.TrimPrefix(firstLine(c.Skipped.Message), "skipped - ")})
			default:
				all = append(all, result{name, passed, ""})
			}
		}
	}
	return all, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// report is what docs/conformance.md says.
type report struct {
	Kubernetes string // its version
	Nodes      int
	Suites     suites
	Results    []result
}

// count tells how many results there are of an outcome.
func count(results []result, o outcome) int {
	n := 0
	for _, r := range results {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

// write writes the report, in Markdown.
func (r report) write(w io.Writer) error {
	var b strings.Builder
	bySuite := map[string][]result{}
	for _, res := range r.Results {
		name, _ := r.Suites.of(res.Spec)
		bySuite[name] = append(bySuite[name], res)
	}
	fmt.Fprintf(&b, `# Conformance

Written by `+"`make conformance`"+`: Kubernetes' own end-to-end tests of the network, of release %s, on a lab cluster of %d nodes with
`+"`--service-proxy full`"+` and without kube-proxy. What is run, and why a spec is not tried, is in `+"`test/conformance/suites.yaml`"+`;
reasons in quotes are the spec's own. No spec is tried twice.

| suite | passed | failed | not supported | cannot run here |
|---|---|---|---|---|
`, r.Kubernetes, r.Nodes)
	row := func(name string, of []result) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", name, count(of, passed), count(of, failed), count(of, unsupported), count(of, notRun))
	}
	for _, s := range r.Suites.Suites {
		row(s.Name, bySuite[s.Name])
	}
	row("all", r.Results)
	for _, s := range r.Suites.Suites {
		of := bySuite[s.Name]
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| spec | result |\n|---|---|\n", s.Name)
		slices.SortFunc(of, func(a, b result) int { return cmp.Compare(a.Spec, b.Spec) })
		for _, res := range of {
			said := res.Outcome.String()
			if res.Why != "" {
				said += ": " + res.Why
			}
			fmt.Fprintf(&b, "| %s | %s |\n", cell(strings.TrimPrefix(res.Spec, "[sig-network] ")), cell(said))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell makes a text fit for a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }
