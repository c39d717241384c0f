package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const junitReport = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5"><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="passed"></testcase>
<testcase name="[It] [sig-network] Services should a [Conformance] [sig-network, Conformance]" status="passed"></testcase>
<testcase name="[It] [sig-network] Services should b" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[It] [sig-network] Services should c [sig-network]" status="skipped"><skipped message="skipped - Requires at least 3 nodes&#xA;more"></skipped></testcase>
<testcase name="[It] [sig-network] DNS should d | e" status="failed"><failure message="timed out&#xA;later" type="failed">In [It] at: x.go:1</failure></testcase>
<testcase name="[It] [sig-network] DNS should f" status="panicked"><error message="" type="panicked">test panicked</error></testcase>
</testsuite></testsuites>`

// TestReadJUnit: what was not chosen is no result, and what a spec says itself is kept.
func TestReadJUnit(t *testing.T) {
	got, err := readJUnit(strings.NewReader(junitReport))
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{"[sig-network] Services should a [Conformance]", passed, ""},
		{"[sig-network] Services should c", notRun, "Requires at least 3 nodes"},
		{"[sig-network] DNS should d | e", failed, "timed out"},
		{"[sig-network] DNS should f", failed, "test panicked"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if _, err := readJUnit(strings.NewReader("no XML")); err == nil {
		t.Error("what is no report is read as one")
	}
}

// TestReport: every result is in the table, below its suite.
func TestReport(t *testing.T) {
	s, err := parseSuites(suitesFile)
	if err != nil {
		t.Fatal(err)
	}
	results, err := readJUnit(strings.NewReader(junitReport))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (report{"1.2.3", 3, s, results}).write(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| all | 1 | 2 | 0 | 1 |", "| Services | 1 | 0 | 0 | 1 |", "| DNS | 0 | 2 | 0 | 0 |", "## DNS", "| Services should a [Conformance] | passed |",
		"| Services should c | cannot run here: Requires at least 3 nodes |", `| DNS should d \| e | failed: timed out |`,
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, b.String())
		}
	}
}

// TestSuites: specs are sorted by the file, and a wrong file is refused.
func TestSuites(t *testing.T) {
	s, err := parseSuites(suitesFile)
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		"[sig-network] Netpol API should support creating NetworkPolicy API operations": "NetworkPolicy",
		"[sig-network] Services should be rejected when no endpoints exist":             "Services",
		"[sig-network] Ingress API should support x [Conformance]":                      "Others of [Conformance]",
		"[sig-network] Ingress API should support y":                                    "",
		"[sig-node] Pods should z [Conformance]":                                        "",
	} {
		if got, _ := s.of(spec); got != want {
			t.Errorf("%s is in suite %q, expected %q", spec, got, want)
		}
	}
	const granular = "[sig-network] Networking Granular Checks: Services should "
	for spec, want := range map[string]outcome{
		granular + "function for pod-Service: sctp [Feature:SCTPConnectivity]": notRun,
		granular + "be able to handle large requests: udp":                     passed,
		granular + "be able to handle large requests: http":                    passed,
	} {
		if got, why := s.whyNot(spec); got != want || (why == "") != (want == passed) {
			t.Errorf("%s: %v %q, expected %v", spec, got, why, want)
		}
	}
	wanting, err := parseSuites([]byte("suites: [{name: a, specs: a}]\nunsupported: [{specs: large, reason: too large}]"))
	if err != nil {
		t.Fatal(err)
	}
	if got, why := wanting.whyNot("large requests"); got != unsupported || why != "too large" {
		t.Errorf("a spec that is not supported: %v %q", got, why)
	}
	for _, text := range []string{"suites: [{name: a}]", "suites: [{name: a, specs: '('}]", "impossible: [{specs: a}]", "unsupported: [{specs: a}]", "others: []"} {
		if _, err := parseSuites([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestResume: a run that goes on takes over what reports tell of its specs, once.
func TestResume(t *testing.T) {
	r := runner{results: t.TempDir()}
	for _, name := range []string{"batch-001.xml", "batch-002.xml", "list.xml"} {
		if err := os.WriteFile(filepath.Join(r.results, name), []byte(junitReport), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.earlier([]string{"[sig-network] Services should b", "[sig-network] Services should c", "[sig-network] DNS should f"})
	want := []result{{"[sig-network] Services should c", notRun, `"Requires at least 3 nodes"`}, {"[sig-network] DNS should f", failed, "test panicked"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; expected %+v", got, err, want)
	}
}
