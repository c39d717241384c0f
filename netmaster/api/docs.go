package api

import (
	"net/http"
	"path"

	"github.com/gorilla/mux"

	"github.com/contiv/netplugin/contivmodel/openapi"
)

// pagePolicy allows the page of the API what it needs, from this server only: its own
// script and style, and requests to the API (W3C Content Security Policy Level 3).
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docs routes requests for the page on which people read about the API.
func (h *Handler) docs() {
	h.router.Methods(http.MethodGet).Path("/docs" + slash).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := openapi.Page()
		if err != nil {
			h.fail(w, r, err)
			return
		}
		writePage(w, "text/html; charset=utf-8", text)
	})
	h.router.Methods(http.MethodGet).Path("/docs/{asset:[a-z.]+}").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := mux.Vars(r)["asset"]
		content, ok := openapi.Asset(name)
		if !ok {
			http.NotFound(w, r)
			return
		}
		kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
		writePage(w, kinds[path.Ext(name)], content)
	})
}

func writePage(w http.ResponseWriter, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-cache") // it is of the version that runs
	_, _ = w.Write(content)                     // a client that has gone is nobody's error
}
