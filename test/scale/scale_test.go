package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/utils/cliconf"
)

// TestMain lets this program play the roles of the command, in a namespace of its own.
func TestMain(m *testing.M) {
	if os.Getenv(agentsVariable) != "" {
		main()
	}
	status, again, err := isolated(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if again {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// small is a cluster that takes seconds.
var small = size{Hosts: 12, Agents: 12, Full: 2, Endpoints: 120, Tenants: 6, Networks: 12, Groups: 12, Rules: 48, Services: 6}

// Every line of the report has a figure, with the store in netmaster and with one of its own,
// and nothing is left.
func TestSmallCluster(t *testing.T) {
	for _, store := range []string{cliconf.StoreEmbedded, cliconf.StoreEtcd} {
		t.Run(store, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(2*time.Minute))
			defer cancel()
			var out bytes.Buffer
			o := options{
				bin: labtest.Bin(t), dir: t.TempDir(), document: filepath.Join(t.TempDir(), "scale.md"), store: store, mode: "kubernetes",
				common: small, sizes: []size{small}, pods: 200, policies: 10, changes: 5, rate: 50, seconds: 1, away: 100 * time.Millisecond, limit: time.Hour, out: &out,
			}
			if err := run(ctx, o); err != nil {
				t.Fatal(err)
			}
			written, err := os.ReadFile(o.document)
			if err != nil {
				t.Fatal(err)
			}
			if string(written) != out.String() {
				t.Errorf("the document differs from what was printed:\n%s", written)
			}
			measured, _ := strings.CutSuffix(out.String(), notes) // which have tables of their own
			for _, row := range rows[:len(rows)-1] {              // the last one says what has failed
				withLeader := store != cliconf.StoreEmbedded
				if strings.HasPrefix(row.key, "leader-") && !withLeader {
					continue
				}
				if !strings.Contains(measured, "| "+row.text+" | "+row.wanted+" | ") || strings.Contains(measured, "| "+row.text+" | "+row.wanted+" |  |") {
					t.Errorf("no figure for %q in\n%s", row.text, measured)
				}
			}
			for _, row := range policyRows {
				if !strings.Contains(measured, "| "+row.text+" | "+row.wanted+" | ") || strings.Contains(measured, "| "+row.text+" | "+row.wanted+" |  |") {
					t.Errorf("no figure for %q in\n%s", row.text, measured)
				}
			}
			if left, err := os.ReadDir(o.dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]string{
		"10:100": "10 10 100", "100:1000:10": "100 10 1000",
		"": "", "10": "", "1:1": "", "10:100:11": "", "10:100:5:5": "", "10:x": "", "70000:1": "", "10:-1": "",
	} {
		s, err := small.plain().with(text)
		if got := fmt.Sprint(s.Hosts, s.Agents, s.Endpoints); (err == nil) != (want != "") || want != "" && got != want {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
	}
}

// plain is a size without what -sizes says.
func (s size) plain() size {
	s.Hosts, s.Agents, s.Endpoints = 0, 0, 0
	return s
}

func TestQuantiles(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i)*time.Millisecond)
	}
	if got := quantiles(all); got != "100 ms / 198 ms" {
		t.Error(got)
	}
	if got := quantiles(nil); got != "" {
		t.Error(got)
	}
}

// What an agent has reached, and when, is known until it is forgotten.
func TestHistory(t *testing.T) {
	var h history
	done := make(chan error)
	go func() { done <- h.await(t.Context(), 7) }()
	before := time.Now().UnixNano()
	h.reach(5)
	h.reach(8)
	h.reach(6) // is passed
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if at := h.at(6); at < before || at < h.at(5) || at != h.at(8) {
		t.Errorf("revision 6 at %d", at)
	}
	if at := h.at(9); at != 0 {
		t.Errorf("revision 9 at %d", at)
	}
	h.forget()
	if len(h.marks) != 1 || h.at(8) == 0 {
		t.Errorf("%+v", h.marks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if h.await(ctx, 9) == nil {
		t.Error("an end is no arrival")
	}
}
