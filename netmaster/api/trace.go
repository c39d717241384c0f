package api

import (
	"net/http"
	"strconv"

	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// trace routes the question what becomes of a packet.
func (h *Handler) trace(e *intent.Engine) {
	h.router.Methods(http.MethodGet).Path(traceapi.PathMaster[:len(traceapi.PathMaster)-1] + slash).
		HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query, err := traceQuery(r)
			if err != nil {
				h.fail(w, r, err)
				return
			}
			answer, err := e.Trace(r.Context(), query, scope(r))
			h.answer(w, r, answer, err)
		})
}

func traceQuery(r *http.Request) (traceapi.Query, error) {
	q := r.URL.Query()
	query := traceapi.Query{
		From: q.Get(traceapi.QueryFrom), To: q.Get(traceapi.QueryTo), Tenant: q.Get(traceapi.QueryTenant), Proto: q.Get(traceapi.QueryProto),
	}
	if text := q.Get(traceapi.QueryPort); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return query, errs.New(errs.Invalid, "port %.40q: expected 1 to 65535", text)
		}
		query.Port = uint16(n)
	}
	if text := q.Get(traceapi.QueryFamily); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return query, errs.New(errs.Invalid, "address family %.40q: expected 4 or 6", text)
		}
		query.Family = n
	}
	return query, nil
}
