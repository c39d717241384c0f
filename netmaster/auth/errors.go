package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/contiv/netplugin/utils/httproutes"
)

// Error is a refusal with the HTTP status that the login API has for it.
type Error struct {
	Code int
	Text string
	Wait time.Duration // with 429 and 503: until the next try is looked at
}

func (e *Error) Error() string { return e.Text }

// ServeHTTP answers a request with the error as the login API does.
func (e *Error) ServeHTTP(w http.ResponseWriter, _ *http.Request) { WriteError(w, e) }

// Status is the HTTP status.
func (e *Error) Status() int { return e.Code }

func refuse(status int, format string, args ...any) error {
	return &Error{Code: status, Text: fmt.Sprintf(format, args...)}
}

// StatusOf returns the HTTP status of an error of this package: 400 for a token that is
// malformed, expired or logged out, 401 for a user who is gone or disabled, 403 for what is
// not allowed, 429 for too many failures, 503 while the store or a directory is unavailable.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return httproutes.StatusOf(err)
}

// withStatus gives an error the method that listeners ask for its status.
func withStatus(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: StatusOf(err), Text: err.Error()}
}

// WriteError answers a request with an error as the login API does: {"error": "…"}.
func WriteError(w http.ResponseWriter, err error) {
	status := StatusOf(err)
	var e *Error
	if errors.As(err, &e) && e.Wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.Wait.Seconds()))))
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
