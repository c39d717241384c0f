package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/openapi"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Paths of the object model. A trailing slash belongs to every one; it may be left out.
const (
	objectRoot  = "/api/v1/"
	inspectRoot = objectRoot + "inspect/"
	keyPart     = "/{key:[^/]+}"
	slash       = "{slash:/?}"
)

// collection routes the requests for one kind of object.
func (h *Handler) collection(c intent.Collection) {
	list, one := objectRoot+c.Name()+slash, objectRoot+c.Name()+keyPart+slash
	h.router.Methods(http.MethodGet).Path(list).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.answer(w, r, c.List(scope(r)), nil)
	})
	h.keyed(http.MethodGet, one, func(_ http.ResponseWriter, _ *http.Request, key string) (any, error) {
		return c.Get(key)
	})
	put := func(w http.ResponseWriter, r *http.Request, key string) (any, error) {
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		obj, err := c.Put(r.Context(), key, body)
		h.stamp(w, err)
		return obj, err
	}
	h.keyed(http.MethodPost, one, put)
	h.keyed(http.MethodPut, one, put)
	h.keyed(http.MethodDelete, one, func(w http.ResponseWriter, r *http.Request, key string) (any, error) {
		err := c.Delete(r.Context(), key)
		h.stamp(w, err)
		return key, err
	})
	h.keyed(http.MethodGet, inspectRoot+c.Name()+keyPart+slash, func(_ http.ResponseWriter, r *http.Request, key string) (any, error) {
		return c.Inspect(r.Context(), key)
	})
}

// stamp notes in an answer what a host must have applied to be up to date with it. Later
// changes of others may be included: whoever waits for them waits a little longer.
func (h *Handler) stamp(w http.ResponseWriter, err error) {
	if err != nil {
		return
	}
	revision, settings := h.written()
	w.Header().Set(masterapi.RevisionHeader, strconv.FormatInt(revision, 10))
	w.Header().Set(masterapi.SettingsHeader, strconv.FormatInt(settings, 10))
}

// endpoints routes the inspection of endpoints, which are no objects of their own.
func (h *Handler) endpoints(e *intent.Engine) {
	path := inspectRoot + contivmodel.EndpointCollection + keyPart + slash
	h.keyed(http.MethodGet, path, func(_ http.ResponseWriter, r *http.Request, search string) (any, error) {
		return e.InspectEndpoint(r.Context(), search, scope(r))
	})
}

// document routes requests for the description of the object model.
func (h *Handler) document() {
	h.router.Methods(http.MethodGet).Path(objectRoot + "openapi.json").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := openapi.JSON()
		h.answer(w, r, json.RawMessage(text), err)
	})
}

// keyed routes requests that name an object.
func (h *Handler) keyed(method, path string, do func(w http.ResponseWriter, r *http.Request, key string) (any, error)) {
	h.router.Methods(method).Path(path).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := pathVar(r, "key")
		if err == nil && len(key) > maxKey {
			err = errs.New(errs.Invalid, "Invalid Key")
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		v, err := do(w, r, key)
		h.answer(w, r, v, err)
	})
}

// maxKey bounds a key in a path: three names of 256 bytes and their separators.
const maxKey = 1024
