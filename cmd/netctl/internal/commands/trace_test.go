package commands

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTrace holds the screens of netctl trace to golden files, for an answer that a
// netmaster has given.
func TestTrace(t *testing.T) {
	answer, err := os.ReadFile(filepath.Join("testdata", "trace", "answer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	t.Setenv("NETMASTER", server.URL)
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		golden, asked string
		args          []string
	}{
		{"plain.txt", "/api/v1/trace/?from=a&port=81&to=b", []string{"--from", "a", "--to", "b", "--port", "81"}},
		{"verbose.txt", "/api/v1/trace/?family=6&from=a&proto=udp&tenant=blue&to=b", []string{"--from", "a", "--to", "b", "--proto", "udp", "--ipv6", "--tenant", "blue", "--verbose"}},
	} {
		var out, errOut bytes.Buffer
		if status := Run(t.Context(), append([]string{"netctl", "trace"}, c.args...), strings.NewReader(""), &out, &errOut); status != 0 {
			t.Fatalf("%v: exit status %d: %s", c.args, status, errOut.String())
		}
		if asked != c.asked {
			t.Errorf("asks for %s, want %s", asked, c.asked)
		}
		path := filepath.Join("testdata", "trace", c.golden)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", c.golden, diff)
		}
	}
	var out, errOut bytes.Buffer
	if status := Run(t.Context(), []string{"netctl", "trace", "--from", "a"}, strings.NewReader(""), &out, &errOut); status != exitUsage || !strings.Contains(errOut.String(), "--from and --to are needed") {
		t.Errorf("without an end: exit status %d: %s", status, errOut.String())
	}
}
