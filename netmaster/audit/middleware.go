package audit

import (
	"net/http"
	"strings"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
)

const (
	maxReason = 200 // bytes of an error that are noted
	maxText   = 256 // bytes of what a client chooses
)

// Middleware notes what next answers, for the identity in the request's context.
func Middleware(l *Log, rules *authz.Rules, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := false
		rec := &recorder{ResponseWriter: w}
		method, path := r.Method, r.URL.EscapedPath()
		defer func() {
			switch {
			case rec.code == 0 && served:
				rec.code = http.StatusOK
			case rec.code == 0: // next panicked
				rec.code = http.StatusInternalServerError
			}
			id := identity.From(r.Context())
			denied := rec.code == http.StatusUnauthorized || rec.code == http.StatusForbidden
			nobody := id.Kind == identity.Anonymous && len(id.Grants) == 0 && rec.code == http.StatusBadRequest
			if (method == http.MethodGet || method == http.MethodHead) && !denied && !nobody {
				return
			}
			kind, key, tenant := rules.Object(method, path)
			l.Add(Record{
				Who: id.String(), How: id.How, Source: id.Source, Verb: cut(method, 16), Path: cut(path, maxText),
				Kind: kind, Key: cut(key, maxText), Tenant: cut(tenant, maxText), Status: rec.code,
				Reason: strings.TrimSpace(string(rec.reason)), Revision: w.Header().Get(masterapi.RevisionHeader),
			})
		}()
		next.ServeHTTP(rec, r)
		served = true
	})
}

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}

// recorder remembers the status of an answer, and how the text of an error begins.
type recorder struct {
	http.ResponseWriter
	code   int
	reason []byte
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= 200 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	if room := maxReason - len(r.reason); r.code >= 400 && room > 0 {
		r.reason = append(r.reason, p[:min(room, len(p))]...)
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
