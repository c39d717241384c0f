package httproutes

import "net/http"

// RefusedHeader marks an answer whose text says why this client may not do this. The
// original's clients show the status alone.
const RefusedHeader = "X-Contiv-Refused"

// Refuse answers a request that a client may not make, in one line.
func Refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set(RefusedHeader, "true")
	http.Error(w, why, status)
}
