// Package api is the HTTP face of a leading netmaster: the object model under
// /api/v1/, the calls of agents under /plugin/, and what operators look at and clean up
// under /services, /service/ and /debug/. It translates, and decides nothing.
//
// # Answers
//
// 200 with JSON and a newline; 404 for a path or method that does not exist; 503 with
// Retry-After when the request may succeed if repeated, because this netmaster does
// not lead any more or the store does not answer; 500 for everything else that goes
// wrong, missing objects included. Errors are one line of text. Clients of the
// original depend on these codes, so there is no 201, 400 or 409.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/doctor"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// maxBody bounds a request body, in bytes.
const maxBody = 1 << 20

// defaultTimeout is how long a request may take: longer than the store needs to elect
// a leader of its own, shorter than container runtimes wait.
const defaultTimeout = 10 * time.Second

// Config is what a Handler needs besides the intent.
type Config struct {
	Log     logrus.FieldLogger
	Members *cluster.Members // what this netmaster knows of the agents
	Hosts   Hosts            // the hosts, and the orphans of those that are down
	Records http.Handler     // what agents have to say of their hosts; nil: nothing
	Flows   Flows            // tells of connections; nil: nothing does
	// LastLines writes the last lines of this netmaster's log; nil: they are not kept.
	LastLines func(w io.Writer) error
	Doctor    doctor.Config // what netctl doctor asks; without Agents, it cannot be asked
	Timeout   time.Duration // how long a request waits for the store; 0 means 10 s
}

// Hosts is what is known of hosts; see hostgc.Collector.
type Hosts interface {
	Hosts(ctx context.Context) (map[string]cluster.Known, error)
	CollectGarbage(ctx context.Context, host string, older time.Duration, dryRun bool) ([]clusterapi.GoneHost, error)
}

// Handler routes the requests of one term.
type Handler struct {
	log     logrus.FieldLogger
	timeout time.Duration
	router  *mux.Router
	written func() (revision, settings int64)
	metrics *metrics
	flows   Flows
}

// New returns the Handler of a term.
func New(cfg Config, e *intent.Engine) *Handler {
	h := &Handler{log: cfg.Log, timeout: cfg.Timeout, router: mux.NewRouter().UseEncodedPath(), written: e.Written, flows: cfg.Flows}
	if h.timeout == 0 {
		h.timeout = defaultTimeout
	}
	// Without this, a known path with another method would be a 405.
	h.router.MethodNotAllowedHandler = http.NotFoundHandler()
	for _, c := range e.Collections() {
		h.collection(c)
	}
	h.endpoints(e)
	h.plugin(e)
	if cfg.Records != nil {
		for _, what := range []string{masterapi.HostRecord, masterapi.HostPresence} {
			h.router.Methods(http.MethodPut, http.MethodDelete).Path(masterapi.PathHosts + "{label}/" + what).Handler(cfg.Records)
		}
	}
	h.document()
	h.docs()
	h.services(e)
	h.cleanup(e)
	h.metrics = newMetrics(e, cfg.Members)
	h.router.Use(h.metrics.observe)
	h.cluster(e, cfg.Members, cfg.Hosts)
	h.trace(e)
	if cfg.Doctor.Agents != nil {
		h.doctor(e, cfg)
	}
	if cfg.Flows != nil {
		h.whatIf(e, cfg.Members)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.flows != nil && IsStream(r) {
		h.stream(w, r)
		return
	}
	timeout := h.timeout
	if isPreview(r) {
		timeout = previewTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	h.router.ServeHTTP(w, r.WithContext(ctx))
}

// scope is what a request is shown: everything, or the tenants of its grants.
func scope(r *http.Request) intent.Sees {
	id := identity.From(r.Context())
	if id.Sees("") {
		return nil
	}
	return id.Sees
}

// readBody reads a bounded body.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errs.New(errs.Invalid, "request body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "read the request body: %w", err)
	}
	return body, nil
}

// pathVar returns a variable of the matched route, decoded.
func pathVar(r *http.Request, name string) (string, error) {
	v, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil {
		return "", errs.New(errs.Invalid, "path: %w", err)
	}
	return v, nil
}

// answer writes v, or the error if there is one.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	var text bytes.Buffer
	if err == nil {
		err = json.NewEncoder(&text).Encode(v)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text.Bytes()) // a client that has gone is nobody's error
}

// fail writes an error as one line of text.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch kind := errs.KindOf(err); kind {
	case errs.Forbidden:
		status = http.StatusForbidden
	case errs.Unavailable, errs.Timeout:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case errs.Internal, errs.Other:
		h.log.WithFields(logrus.Fields{"method": r.Method, "path": r.URL.Path}).WithError(err).Error("request failed")
	}
	http.Error(w, strings.Join(strings.Fields(err.Error()), " "), status)
}
