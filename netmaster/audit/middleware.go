package audit

import (
	"net/http"
	"strings"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/httproutes"
)

const maxText = 256 // bytes of what a client chooses

// Middleware notes what next answers, for the identity in the request's context.
func Middleware(l *Log, rules *authz.Rules, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := false
		rec := &httproutes.Recorder{ResponseWriter: w}
		method, path := r.Method, r.URL.EscapedPath()
		defer func() {
			status := rec.Ended(served)
			id := identity.From(r.Context())
			denied := status == http.StatusUnauthorized || status == http.StatusForbidden
			nobody := id.Kind == identity.Anonymous && len(id.Grants) == 0 && status == http.StatusBadRequest
			if (method == http.MethodGet || method == http.MethodHead) && !denied && !nobody {
				return
			}
			kind, key, tenant := rules.Object(method, path)
			l.Add(Record{
				Who: id.String(), How: id.How, Source: id.Source, Verb: cut(method, 16), Path: cut(path, maxText),
				Kind: kind, Key: cut(key, maxText), Tenant: cut(tenant, maxText), Status: status,
				Reason: strings.TrimSpace(string(rec.Reason)), Revision: w.Header().Get(masterapi.RevisionHeader),
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
