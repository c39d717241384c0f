package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// plugin routes the calls agents make for container runtimes.
func (h *Handler) plugin(e *intent.Engine) {
	call(h, masterapi.PathAllocAddress, func(ctx context.Context, req masterapi.AllocAddressRequest) (any, int64, error) {
		resp, err := e.AllocAddress(ctx, req)
		return resp, 0, err
	})
	call(h, masterapi.PathReleaseAddress, func(ctx context.Context, req masterapi.ReleaseAddressRequest) (any, int64, error) {
		return masterapi.ReleaseAddressResponse{Status: "success"}, 0, e.ReleaseAddress(ctx, req)
	})
	call(h, masterapi.PathCreateEndpoint, func(ctx context.Context, req masterapi.CreateEndpointRequest) (any, int64, error) {
		ch, err := e.CreateEndpoint(ctx, req)
		return masterapi.CreateEndpointResponse{EndpointConfig: ch.Endpoint}, ch.Revision, err
	})
	call(h, masterapi.PathDeleteEndpoint, func(ctx context.Context, req masterapi.DeleteEndpointRequest) (any, int64, error) {
		ch, err := e.DeleteEndpoint(ctx, req)
		return masterapi.DeleteEndpointResponse{EndpointConfig: ch.Endpoint}, ch.Revision, err
	})
	h.router.Methods(http.MethodGet).Path("/plugin/host/{label:[^/]+}/bgp-secret").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, err := bgpSecret(r, e)
		w.Header().Set("Cache-Control", "no-store")
		h.answer(w, r, secret, err)
	})
	call(h, masterapi.PathUpdateEndpoint, func(ctx context.Context, req masterapi.UpdateEndpointRequest) (any, int64, error) {
		known, err := e.UpdateEndpoint(ctx, req)
		if !known && req.Event == "die" {
			return nil, 0, err
		}
		return masterapi.UpdateEndpointResponse{IPAddress: req.IPAddress}, 0, err
	})
}

// bgpSecret answers the agent of a host, and not even an admin, with its password.
func bgpSecret(r *http.Request, e *intent.Engine) (masterapi.BGPSecret, error) {
	label, err := pathVar(r, "label")
	if err != nil {
		return masterapi.BGPSecret{}, err
	}
	if id := identity.From(r.Context()); id.Kind != identity.Host || id.Name != label {
		return masterapi.BGPSecret{}, errs.New(errs.Forbidden, "%s may not read the BGP password of host %s: the certificate of the host is needed", id, label)
	}
	password, err := e.BGPPassword(label)
	return masterapi.BGPSecret{Password: password}, err
}

// call routes one call. Its content type must be exactly application/json: to
// anything else the path does not exist. A revision, if there is one, goes into the
// answer's header.
func call[Req any](h *Handler, path string, do func(context.Context, Req) (any, int64, error)) {
	h.router.Methods(http.MethodPost).Path(path).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/json" {
			http.NotFound(w, r)
			return
		}
		var req Req
		body, err := readBody(w, r)
		if err == nil {
			err = contivmodel.DecodeJSON(body, &req)
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		v, rev, err := do(r.Context(), req)
		if err == nil && rev != 0 {
			w.Header().Set(masterapi.RevisionHeader, strconv.FormatInt(rev, 10))
		}
		h.answer(w, r, v, err)
	})
}
