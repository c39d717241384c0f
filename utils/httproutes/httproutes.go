// Package httproutes holds what all HTTP servers of the project have in common.
package httproutes

import "net/http"

// OrNotFound serves mux, and answers 404 where it has no handler for the method of a request:
// the mux by itself would answer 405, which the original never does and its clients do not
// know. Its redirects stay.
func OrNotFound(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
