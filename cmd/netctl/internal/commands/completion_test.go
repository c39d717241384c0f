package commands

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCompletionOfMuteServer: a shell does not wait for a server that does not answer.
// What gives up the request is netctl, or it would never end.
func TestCompletionOfMuteServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	var stdout, stderr bytes.Buffer
	status := Run(t.Context(), []string{"netctl", "--netmaster", s.URL, "__complete", "bash", "net", "rm", ""}, strings.NewReader(""), &stdout, &stderr)
	if status != exitOK || stdout.Len() > 0 || stderr.Len() > 0 {
		t.Errorf("status %d, %s%s", status, &stdout, &stderr)
	}
}
