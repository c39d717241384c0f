// Package hostapi writes what agents have to say to the store: the record of their host,
// operational records, docker networks, the registry. A host has a say in its own records
// only, and everything is written under the leader's fence.
package hostapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// maxBody bounds a request's body, maxLabel and maxText the strings in it, in bytes.
const (
	maxBody  = 1 << 20
	maxLabel = 253
	maxText  = 1 << 10
)

// Config is what a Server works with for one term.
type Config struct {
	Log   logrus.FieldLogger
	Store objdb.Store
	Fence objdb.Cmp // holds while this netmaster leads
	Swarm bool      // agents write the docker networks that a swarm shares
}

// Server answers the calls of agents about their own hosts, for one term.
type Server struct {
	cfg      Config
	presence *presence
	mux      *http.ServeMux
}

// New makes a Server; its registry entries are written while Run runs.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, presence: newPresence(cfg), mux: http.NewServeMux()}
	records, present := masterapi.PathHosts+"{label}/"+masterapi.HostRecord, masterapi.PathHosts+"{label}/"+masterapi.HostPresence
	s.mux.Handle("PUT "+records, s.call(s.putRecords))
	s.mux.Handle("PUT "+present, s.call(s.putPresence))
	s.mux.Handle("DELETE "+present, s.call(func(_ context.Context, label string, _ []byte) (any, error) {
		s.presence.leave(label)
		return struct{}{}, nil
	}))
	return s
}

// Begin implements reconcile.Loop; no change of an object concerns the registry.
func (*Server) Begin(context.Context, reconcile.Change) (reconcile.Pending, error) { return nil, nil }

// Run implements reconcile.Loop: it keeps the registry entries of agents until ctx ends.
func (s *Server) Run(ctx context.Context) { s.presence.run(ctx) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// call makes a handler of what is done for a label.
func (s *Server) call(do func(ctx context.Context, label string, body []byte) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		label := r.PathValue("label")
		if err := allowed(identity.From(r.Context()), label); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "read the request body: "+err.Error(), http.StatusBadRequest)
			return
		}
		var text bytes.Buffer
		answer, err := do(r.Context(), label, body)
		if err == nil {
			err = json.NewEncoder(&text).Encode(answer)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text.Bytes()) // a client that has gone is nobody's error
	})
}

// allowed says whether a client may speak for a host: the host itself, and who may do
// everything.
func allowed(id identity.Identity, label string) error {
	if id.IsAdmin() || id.Kind == identity.Host && id.Name == label {
		return nil
	}
	return errs.New(errs.Invalid, "%s may not write records of host %s", id, label)
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch errs.KindOf(err) {
	case errs.Invalid:
		status = http.StatusBadRequest
	case errs.InUse:
		status = http.StatusConflict
	case errs.Unavailable, errs.Timeout:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	default:
		s.cfg.Log.WithField("path", r.URL.Path).WithError(err).Error("cannot write the records of a host")
	}
	http.Error(w, strings.Join(strings.Fields(err.Error()), " "), status)
}

// commit writes under the fence.
func (c Config) commit(ctx context.Context, conditions []objdb.Cmp, ops ...objdb.Op) (int64, error) {
	return c.Store.Commit(ctx, objdb.Txn{If: append([]objdb.Cmp{c.Fence}, conditions...), Then: ops})
}

// fenced writes what depends on nothing but the lead.
func (c Config) fenced(ctx context.Context, ops ...objdb.Op) (int64, error) {
	rev, err := c.commit(ctx, nil, ops...)
	if errors.Is(err, objdb.ErrCompareFailed) {
		return 0, errs.New(errs.Unavailable, "not the leader any more, retry the request")
	}
	return rev, err
}
