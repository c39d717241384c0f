package main

import (
	"bytes"
	_ "embed" // notes.md
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// notes are what figures do not say.
//
//go:embed notes.md
var notes string

// rows are the lines of the table, in order.
var rows = []struct{ key, text, wanted string }{
	{"few-seen", "change for ≤ 10 hosts: request → seen by the last agent, p50 / p99", ""},
	{"few-sent", "the same → compiled and sent by the last full agent, p50 / p99", "p99 ≤ 300 ms"},
	{"all-seen", "change for all hosts: request → seen by the last agent, p50 / p99", ""},
	{"all-sent", "the same → compiled and sent by the last full agent, p50 / p99", "≤ 5 s"},
	{"few-answered", "the request for few hosts is answered, p50 / p99", ""},
	{"all-answered", "the request for all hosts is answered, p50 / p99", ""},
	{"few-work", "one agent: record of few hosts seen → flows sent, p50 / p99", "p99 ≤ 50 ms"},
	{"all-work", "one agent: record of all hosts seen → flows sent, p50 / p99", "p99 ≤ 50 ms"},
	{"flows", "flows of one agent", ""},
	{"agent-memory", "one agent: resident memory", "≤ 60 MiB at 100,000 endpoints"},
	{"agent-peak", "one agent: the most during its start", ""},
	{"start-seen", "one agent starts → has read the state", ""},
	{"start", "one agent starts → all flows sent", "≤ 3 s"},
	{"start-cpu", "one agent: processor time for its start, with giving memory back", ""},
	{"master-idle", "netmaster: resident memory", "≤ 600 MiB"},
	{"rate", "changes per second, at the same time", ""},
	{"rate-cpu", "netmaster then: cores", "≤ 1 core at 500 changes/s"},
	{"rate-memory", "netmaster then: resident memory", "≤ 600 MiB"},
	{"rate-seen", "request → seen by the last agent then, p50 / p99", ""},
	{"rate-sent", "request → sent by the last full agent then, p50 / p99", ""},
	{"rate-behind", "last change → seen by the last agent then", ""},
	{"store-answered", "the store is started again → a change is answered", ""},
	{"store-seen", "the store is started again → all agents have the change", "≤ 10 s"},
	{"store-known", "the store is started again → netmaster knows that all have it", ""},
	{"leader-answered", "the leader is killed → a change is answered", ""},
	{"leader-seen", "the leader is killed → all agents have the change", "≤ 10 s"},
	{"leader-known", "the leader is killed → netmaster knows that all have it", ""},
	{"join", "all agents start, 4 in each process at a time → up to date", ""},
	{"load", "to make all objects, by the API", ""},
	{"failed", "all was measured", ""},
}

// report is what docs/scale.md says.
type report struct {
	options               options
	machine               string
	loadBefore, loadAfter string
	results               []figures // by size
	policies              figures
}

// write writes the report, in Markdown.
func (r report) write(w io.Writer) error {
	var b bytes.Buffer
	o, s := r.options, r.options.common
	fmt.Fprintf(&b, `# Many hosts

Written by `+"`make scale`"+` (`+"`go run ./test/scale`"+`). One netmaster in mode %s with store %s, and agents in three processes, on one machine: %s.
Load average before %s, after %s: everything shares these processors, so a figure with many agents says what this machine can do for
all of them, not what one host has to.

Besides the endpoints, in every column: %d tenants, %d networks, %d groups with a policy each, %d rules, %d services; each tenant's endpoints are on
10 hosts, and one more tenant has an endpoint on every host. All is made through netmaster's API. %d agents are full: the real watch, joining of records,
compiler, bridges' flows, index of names, names of the flow log, with a switch that takes every change at once and counts. The others are light: the
real watch, registration and reports. Times begin when the request is sent; %d changes, one after the other.
The agent of the lines "one agent" runs in a process of its own.

`, o.mode, o.store, r.machine, r.loadBefore, r.loadAfter, s.Tenants, s.Networks, s.Groups, s.Rules, s.Services, s.Full, o.changes)
	line := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rule := []string{"hosts / agents / endpoints", "wanted"}, []string{"---", "---"}
	for _, s := range o.sizes {
		head, rule = append(head, fmt.Sprintf("%d / %d / %d", s.Hosts, s.Agents, s.Endpoints)), append(rule, "---")
	}
	line(head...)
	line(rule...)
	for _, row := range rows {
		cells := []string{row.text, row.wanted}
		for _, f := range r.results {
			cells = append(cells, f[row.key])
		}
		if slices.ContainsFunc(r.results, func(f figures) bool { return f[row.key] != "" }) {
			line(cells...)
		}
	}
	fmt.Fprintf(&b, `
## NetworkPolicies

%d pods, %d of them on the host of the agent, and %d random policies, which hardly two pods share.

`, o.pods, podsHere, o.policies)
	line("one agent", "wanted", "measured")
	line("---", "---", "---")
	for _, row := range policyRows {
		line(row.text, row.wanted, r.policies[row.key])
	}
	b.WriteString(notes)
	_, err := w.Write(b.Bytes())
	return err
}

// quantiles are the median and the 99th percentile.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(q int) string { return short(sorted[(len(sorted)-1)*q/100]) }
	return at(50) + " / " + at(99)
}

// short writes a duration with two digits or so.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return seconds(d)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// machine describes the processors.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it, there is no name
	for l := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), strings.TrimSpace(strings.TrimLeft(name, "\t :")))
		}
	}
	return fmt.Sprintf("%d cores", runtime.NumCPU())
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
