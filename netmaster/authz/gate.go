package authz

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/httproutes"
)

// maxBody bounds a body that the gate reads, in bytes: as the API does.
const maxBody = 1 << 20

// Gate refuses requests that their identity may not send, or sends too fast, and passes on the
// others. It answers PathCanI itself.
func Gate(rules *Rules, next http.Handler) http.Handler {
	limits := newFlood()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identity.From(r.Context())
		req := Request{Method: r.Method, Path: r.URL.EscapedPath(), Body: func() ([]byte, error) { return keepBody(w, r) }}
		if err := rules.Decide(id, req); err != nil {
			httproutes.Refuse(w, Status(err), err.Error())
			return
		}
		if why := limits.refusal(id, r.Method); why != "" {
			w.Header().Set("Retry-After", "1")
			httproutes.Refuse(w, http.StatusTooManyRequests, why)
			return
		}
		if r.Method == http.MethodPost && r.URL.Path == PathCanI {
			rules.serveCanI(w, r, id)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Status is the HTTP status of an error of Decide. That of a missing token is the
// original's.
func Status(err error) int {
	switch errs.KindOf(err) {
	case errs.Forbidden:
		return http.StatusForbidden
	case errs.Exhausted:
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusBadRequest
	}
}

// keepBody reads the body and puts it back for the next one to read.
func keepBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, errs.New(errs.Exhausted, "request body is larger than %d bytes", large.Limit)
	case err != nil:
		return nil, errs.New(errs.Invalid, "read the request body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
