package api

import (
	"fmt"
	"net/http"

	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state"
)

// services routes the requests for the records of services.
func (h *Handler) services(e *intent.Engine) {
	h.router.Methods(http.MethodGet).Path("/services" + slash).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.answer(w, r, e.Services(scope(r)), nil)
	})
	h.keyed(http.MethodGet, "/service"+keyPart+slash, func(_ http.ResponseWriter, r *http.Request, id string) (any, error) {
		s, err := e.Service(id, scope(r))
		return []*state.ServiceLB{s}, err
	})
}

// cleanup routes the requests to remove endpoints whose containers are gone.
func (h *Handler) cleanup(e *intent.Engine) {
	path := "/debug/epcleanup/tenant/{tenant:[^/]+}/{category:[^/]+}" + keyPart + slash
	h.keyed(http.MethodDelete, path, func(_ http.ResponseWriter, r *http.Request, id string) (any, error) {
		tenant, err := pathVar(r, "tenant")
		if err != nil {
			return nil, err
		}
		category, err := pathVar(r, "category")
		if err != nil {
			return nil, err
		}
		n, err := e.CleanUpEndpoints(r.Context(), tenant, category, id)
		return fmt.Sprintf("cleaned up %d endpoints of %s %s", n, category, id), err
	})
}
