package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
)

// TestMethods: whatever the path, a method that it does not have is 404 with the text of the
// original, which has no 405. TestDocument asks so of every path of the object model that is described.
func TestMethods(t *testing.T) {
	base := apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t)))
	for path, served := range map[string]string{
		"/api/v1/networks/":              "GET",
		"/api/v1/networks/default:x/":    "GET POST PUT DELETE",
		"/api/v1/inspect/globals/":       "",
		inspect + "networks/default:x/":  "GET",
		inspect + "endpoints/x/":         "GET",
		"/api/v1/openapi.json":           "GET",
		"/docs":                          "GET",
		"/services":                      "GET",
		"/debug/ofnet":                   "GET",
		masterapi.PathAllocAddress:       "POST",
		masterapi.PathReleaseAddress:     "POST",
		masterapi.PathCreateEndpoint:     "POST",
		masterapi.PathDeleteEndpoint:     "POST",
		masterapi.PathUpdateEndpoint:     "POST",
		"/api/v1/nothing/":               "",
		"/api/v1/networks/default:x/y/z": "",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if slices.Contains(strings.Fields(served), method) {
				continue
			}
			if status, body := send(t, method, base+path, ""); status != http.StatusNotFound || body != "404 page not found\n" && body != "404 page not found" {
				t.Errorf("%s %s: %d %q, want 404 page not found", method, path, status, body)
			}
		}
	}
}
