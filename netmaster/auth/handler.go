package auth

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// access is who may ask for a path.
type access int

const (
	open      access = iota // everybody
	known                   // whoever has shown who it is
	adminOnly               // the role admin
)

// answer is what a request gets; body nil: nothing but the status.
type answer struct {
	status int
	body   any
}

// call serves one path.
type call func(r *http.Request, who identity.Identity) (answer, error)

// routes is the login API, below Prefix, with paths as they are without a slash at the end.
func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		access  access
		serve   call
	}{
		{"POST /login", open, s.serveLogin},
		{"GET /version", open, s.serveVersion},
		{"GET /health", open, s.serveHealth},
		{"POST /logout", known, s.serveLogout},
		{"GET /whoami", known, s.serveWhoAmI},
		{"POST /local_users", adminOnly, s.createUser},
		{"GET /local_users", adminOnly, s.listUsers},
		{"GET /local_users/{name}", known, s.getUser},
		{"PATCH /local_users/{name}", known, s.updateUser},
		{"DELETE /local_users/{name}", adminOnly, s.deleteUser},
		{"POST /authorizations", adminOnly, s.createAuthorization},
		{"GET /authorizations", adminOnly, s.listAuthorizations},
		{"GET /authorizations/{uuid}", adminOnly, s.getAuthorization},
		{"DELETE /authorizations/{uuid}", adminOnly, s.deleteAuthorization},
		{"POST /tokens", known, s.createToken},
		{"GET /tokens", known, s.listTokens},
		{"DELETE /tokens/{id}", known, s.deleteToken},
		{"PUT /ldap_configuration", adminOnly, s.putLDAP},
		{"PATCH /ldap_configuration", adminOnly, s.patchLDAP},
		{"GET /ldap_configuration", adminOnly, s.getLDAP},
		{"DELETE /ldap_configuration", adminOnly, s.deleteLDAP},
		{"PUT /oidc_configuration", adminOnly, s.putOIDC},
		{"GET /oidc_configuration", adminOnly, s.getOIDC},
		{"DELETE /oidc_configuration", adminOnly, s.deleteOIDC},
		{"GET /oidc", open, s.serveOIDC},
		{"POST /oidc/device", open, s.startDevice},
		{"POST /oidc/token", open, s.finishDevice},
	} {
		mux.Handle(route.pattern, endpoint(route.access, route.serve))
	}
	mux.HandleFunc("GET /oidc/login", s.redirectToProvider)
	mux.HandleFunc("GET /oidc/callback", s.returnFromProvider)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, refuse(http.StatusNotFound, "%s %s: there is nothing of that name", r.Method, r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(Prefix, "/"))
		if rest = strings.TrimSuffix(rest, "/"); !ok || rest == "" || path.Clean(rest) != rest {
			WriteError(w, refuse(http.StatusNotFound, "%s: there is nothing of that name", r.URL.Path))
			return
		}
		short := r.Clone(r.Context())
		short.URL.Path, short.URL.RawPath = rest, ""
		short.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, short)
	})
}

// endpoint checks who asks, and writes the answer.
func endpoint(need access, serve call) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := identity.From(r.Context())
		if err := check(need, who); err != nil {
			WriteError(w, err)
			return
		}
		a, err := serve(r, who)
		switch {
		case err != nil:
			WriteError(w, err)
		case a.body == nil:
			w.WriteHeader(a.status)
		default:
			writeJSON(w, a.status, a.body)
		}
	})
}

func check(need access, who identity.Identity) error {
	switch {
	case need == open || who.IsAdmin():
		return nil
	case who.Kind == identity.Anonymous || who.Kind == "":
		return refuse(http.StatusBadRequest, "no token: log in, and send the token in the header X-Auth-Token")
	case need == adminOnly:
		return refuse(http.StatusForbidden, "%s is not allowed to do this: it takes the role admin", who)
	}
	return nil
}

// readBody reads a JSON body. The error's status is 400.
func readBody(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the request body is larger than %d bytes", maxBody)
	case err != nil:
		return errs.New(errs.Invalid, "read the request body: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		// The text of the error can quote the body, which can hold a password.
		return errs.New(errs.Invalid, "the request body is not the JSON that is expected here")
	}
	return nil
}

func (s *Service) serveVersion(*http.Request, identity.Identity) (answer, error) {
	return answer{http.StatusOK, map[string]string{"version": s.cfg.Version}}, nil
}

func (s *Service) serveHealth(*http.Request, identity.Identity) (answer, error) {
	if at, _ := s.dir.at(); at == 0 {
		return answer{http.StatusServiceUnavailable, map[string]string{"status": "unhealthy", "reason": "the users have not been read from the store yet"}}, nil
	}
	return answer{http.StatusOK, map[string]string{"status": "healthy"}}, nil
}
