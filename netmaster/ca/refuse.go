package ca

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/httproutes"
)

// Statuses of refusals.
const (
	unauthorized = http.StatusUnauthorized
	forbidden    = http.StatusForbidden
	notFound     = http.StatusNotFound
	conflict     = http.StatusConflict
)

// refusal is an error whose HTTP status and text the client is to see.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// statusOf returns the HTTP status for an error.
func statusOf(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return httproutes.StatusOf(err)
}

func (c *CA) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status, v = statusOf(err), securityapi.Error{Error: err.Error()}
		c.log.WithError(err).WithField("path", r.URL.Path).WithField("source", r.RemoteAddr).WithField("status", status).
			Info("request about certificates refused")
	}
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
