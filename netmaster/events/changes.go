package events

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// PathChanges is where ServeChanges is served. A slash may follow.
const PathChanges = "/api/v1/changes"

// Parameters of a request for changes, besides kind, which is that of a watch.
const (
	QuerySince = "since" // RFC 3339
	QueryLimit = "limit" // how many of the newest; 1000 if not given, 10000 at most

	defaultLimit, mostLimit = 1000, 10_000
)

// ServeChanges answers 200 with contivmodel.Changes, as far as the user may see them; 500 for
// a parameter that is wrong; 503 while the store is unavailable.
func (h *Hub) ServeChanges(w http.ResponseWriter, r *http.Request) {
	ask, err := parseChanges(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, _, begun := h.history.end(); !begun {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the store is not connected; try again", http.StatusServiceUnavailable)
		return
	}
	asks := identity.From(r.Context())
	answer := h.past.read(ask.since, ask.limit, func(kind, key string) bool {
		return (ask.kinds == nil || slices.Contains(ask.kinds, kind)) && authz.Visible(asks, kind, key)
	})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is nobody's error
}

// changesAsked is a request for changes.
type changesAsked struct {
	since time.Time
	limit int
	kinds []string // nil: all
}

func parseChanges(rawQuery string) (ask changesAsked, err error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return ask, errs.New(errs.Invalid, "query: %w", err)
	}
	if text := query.Get(QuerySince); text != "" {
		if ask.since, err = time.Parse(time.RFC3339, text); err != nil {
			return ask, errs.New(errs.Invalid, "%s %.40q is not a time: expected RFC 3339, for example 2026-01-02T15:04:05Z", QuerySince, text)
		}
	}
	ask.limit = defaultLimit
	if text := query.Get(QueryLimit); text != "" {
		if ask.limit, err = strconv.Atoi(text); err != nil || ask.limit < 1 || ask.limit > mostLimit {
			return ask, errs.New(errs.Invalid, "%s %.40q: expected a number from 1 to %d", QueryLimit, text, mostLimit)
		}
	}
	ask.kinds, err = kinds(query["kind"])
	return ask, err
}
