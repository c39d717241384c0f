package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/netmaster/whatif"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Flows tells of connections; see flows.Service.
type Flows interface {
	whatif.Recorded
	Hits(ctx context.Context, from flows.Counters, rules []flowapi.Hits, show flows.Sees) (flowapi.HitsAnswer, error)
}

// IsStream reports whether a request is answered for as long as its client stays.
func IsStream(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.TrimSuffix(r.URL.Path, "/")+"/" == flowapi.PathMaster
}

// narrow leaves the tenants that an identity is shown; empty: all.
func narrow(asked []string, id identity.Identity) ([]string, error) {
	shown, all := id.Tenants()
	switch {
	case all:
		return asked, nil
	case len(asked) == 0:
		return shown, nil
	}
	for _, tenant := range asked {
		if !id.Sees(tenant) {
			return nil, errs.New(errs.Forbidden, "%s may not read connections of tenant %q: role viewer or ops of that tenant is needed", id, tenant)
		}
	}
	return asked, nil
}

// stream answers with connections, an event on each line.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	f, err := flowapi.ParseFilter(r.URL.Query())
	if err == nil && f.After != "" {
		err = errs.New(errs.Invalid, "after: IDs are those of one host; use since")
	}
	if err == nil {
		f.Tenants, err = narrow(f.Tenants, identity.From(r.Context()))
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out, begun := bufio.NewWriterSize(w, 32<<10), false
	err = h.flows.Stream(r.Context(), f, flows.Sees(scope(r)), func(e flowapi.Event, more bool) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Accel-Buffering", "no") // proxies of the nginx kind must not wait for more
		}
		if err := json.NewEncoder(out).Encode(e); err != nil || more {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
	switch {
	case err != nil && !begun && r.Context().Err() == nil:
		h.fail(w, r, err)
	case err == nil:
		_ = out.Flush() // a client that has gone is nobody's error
	}
}
