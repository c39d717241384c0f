package commands

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBGPPasswordSources: the password need not be an argument, which every process of the
// host can read.
func TestBGPPasswordSources(t *testing.T) {
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		sent = string(text)
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"netctl", "--netmaster", s.URL, "bgp", "create", "host1", "--router-ip", "50.1.1.2/24", "--as", "65002", "--neighbor", "50.1.1.200", "--neighbor-as", "500"}
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"--password-file", path}, exitOK},
		{[]string{"--password-file", "-"}, exitOK},
		{[]string{"--password-file", path + ".none"}, exitLocal},
		{[]string{"--password-file", path, "--password", "x"}, exitUsage},
	} {
		sent = ""
		var out bytes.Buffer
		status := Run(t.Context(), append(append([]string{}, base...), c.args...), strings.NewReader("s3cret\n"), &out, &out)
		if status != c.status || (status == exitOK) != strings.Contains(sent, `"password":"s3cret"`) {
			t.Errorf("%v: status %d, sent %s\n%s", c.args, status, sent, out.String())
		}
	}
}
