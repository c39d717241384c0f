package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
)

// wrongQueries are those with which requests are refused whose answers have no end or are no text.
var wrongQueries = map[string]string{"/api/v1/watch/": "?since=x", "/api/v1/support/": "?size=x"}

// TestDocument checks that the OpenAPI document is served, and that each of its paths
// and methods is one that netmaster answers.
func TestDocument(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	status, text := send(t, "GET", base+"/api/v1/openapi.json", "")
	var d struct {
		OpenAPI string                                `json:"openapi"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil || status != 200 || d.OpenAPI != "3.1.0" {
		t.Fatalf("status %d, version %q, %v", status, d.OpenAPI, err)
	}
	if len(d.Paths) != 14*3+13 {
		t.Errorf("%d paths", len(d.Paths))
	}
	for path, item := range d.Paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			_, described := item[strings.ToLower(method)]
			status, body := send(t, method, base+strings.ReplaceAll(path, "{key}", "nothing")+wrongQueries[path], "")
			if served := status != 404; served != described {
				t.Errorf("%s %s: served is %v (%s), described is %v", method, path, served, body, described)
			}
		}
	}
}
