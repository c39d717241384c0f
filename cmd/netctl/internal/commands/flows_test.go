package commands

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/state/flowapi"
)

// flowEvents are an answer with everything that can be in one.
func flowEvents() []flowapi.Event {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	one := flowapi.Record{
		ID: "h1/1", Start: at, Hosts: []string{"h1"}, Tenant: "blue", Verdict: flowapi.Allowed, Proto: "tcp", Count: 1,
		Src: flowapi.End{Address: netip.MustParseAddr("10.1.1.1"), Port: 4000, Name: "web\x1b[2J"}, Dst: flowapi.End{Address: netip.MustParseAddr("2001:db8::2"), Port: 80, Endpoint: "net.blue-e2"},
		Service:   &flowapi.Service{Name: "shop", Address: netip.MustParseAddr("2001:db8::99"), Port: 8080},
		Decisions: []flowapi.Decision{{Host: "h1", At: flowapi.AtSource, By: flowapi.ByDefault, Verdict: flowapi.Allowed}},
	}
	both := one
	both.Hosts, both.End = []string{"h1", "h2"}, at.Add(90*time.Second)
	both.Decisions = append(both.Decisions[:1:1], flowapi.Decision{Host: "h2", At: flowapi.AtDestination, By: flowapi.ByRule, Policy: "guard", Rule: "7", Verdict: flowapi.Allowed})
	both.WouldBe = &flowapi.Decision{Host: "h2", At: flowapi.AtDestination, By: flowapi.ByRule, Policy: "next", Rule: "1", Verdict: flowapi.Denied}
	ping := flowapi.Record{
		ID: "h2/5", Start: at.Add(time.Minute), Hosts: []string{"h2"}, Verdict: flowapi.Denied, Proto: "icmp", Count: 12,
		Src: flowapi.End{Address: netip.MustParseAddr("10.1.1.9")}, Dst: flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: 8 << 8, Name: "db"},
		Decisions: []flowapi.Decision{{Host: "h2", At: flowapi.AtBoth, By: flowapi.ByAntiSpoofing, Verdict: flowapi.Denied}},
	}
	return []flowapi.Event{
		{Missing: &flowapi.Missing{Host: "h3", Error: "the agent does not answer"}},
		{Record: &one},
		{Record: &both},
		{Record: &ping},
		{Gap: &flowapi.Gap{Host: "h2", From: at, To: at.Add(time.Second), Count: 40, Why: "more packets were denied than are looked at"}},
		{Heartbeat: &flowapi.Heartbeat{Time: at, Live: true}},
	}
}

// TestFlows holds the screens of netctl flows to golden files.
func TestFlows(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		out := json.NewEncoder(w)
		for _, e := range flowEvents() {
			_ = out.Encode(e)
		}
		if r.URL.Query().Get("follow") != "" {
			closed := *flowEvents()[2].Record
			_ = out.Encode(flowapi.Event{Record: &closed}) // nothing new
			closed.End = closed.End.Add(time.Minute)
			_ = out.Encode(flowapi.Event{Record: &closed})
		}
	}))
	defer server.Close()
	t.Setenv("NETMASTER", server.URL)
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		golden, asked string
		args          []string
		status        int
	}{
		{"plain.txt", "/api/v1/flows/?limit=1000", nil, 0},
		{"json.txt", "/api/v1/flows/?either=true&from=a&host=h&port=80&proto=tcp&rule=r&tenant=blue&tenant=red&to=b&verdict=denied", []string{
			"--json", "--limit", "0", "--from", "a", "--to", "b", "--either", "--denied", "--host", "h", "--port", "80", "--proto", "tcp", "--rule", "r", "-t", "blue", "-t", "red",
		}, 0},
		{"follow.txt", "/api/v1/flows/?follow=true&limit=3&since=2026-01-02T15%3A04%3A05Z", []string{"--follow", "--limit", "3", "--since", "2026-01-02T15:04:05Z"}, exitRequest},
	} {
		var out, errOut bytes.Buffer
		if status := Run(t.Context(), append([]string{"netctl", "flows"}, c.args...), strings.NewReader(""), &out, &errOut); status != c.status {
			t.Fatalf("%v: exit status %d: %s", c.args, status, errOut.String())
		}
		if asked != c.asked {
			t.Errorf("asks for %s, want %s", asked, c.asked)
		}
		golden(t, filepath.Join("testdata", "flows", c.golden), out.String())
	}
	var out, errOut bytes.Buffer
	if status := Run(t.Context(), []string{"netctl", "flows", "--denied", "--allowed"}, strings.NewReader(""), &out, &errOut); status != exitUsage {
		t.Errorf("exit status %d: %s", status, errOut.String())
	}
}

// golden compares a screen with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s, -want +got:\n%s", path, diff)
	}
}
