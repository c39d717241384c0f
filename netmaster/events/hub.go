package events

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx"
)

// Path is where a Hub is served. A slash may follow.
const Path = "/api/v1/watch"

// Defaults of a Config.
const (
	defaultHeartbeat  = 15 * time.Second
	defaultPatience   = 30 * time.Second
	defaultMaxStreams = 1024
	defaultMaxEach    = 128
	defaultMaxBatches = 16 << 10
	defaultMaxBytes   = 16 << 20
)

// listWithin bounds the reading of all objects from the store.
const listWithin = 10 * time.Second

// Config bounds a Hub. Zero values mean the defaults.
type Config struct {
	Heartbeat  time.Duration // between signs of life on a quiet stream; 15 s
	Patience   time.Duration // how long a write may take before the client is cut off; 30 s
	MaxStreams int           // how many clients there may be; 1024
	MaxEach    int           // how many of one identity, or without one of one address; 128
	MaxBatches int           // how many transactions, and changes, are remembered; 16384
	MaxBytes   int           // how many bytes of objects are remembered, for either; 16 MiB
}

// Hub serves streams of events of one store. Safe for concurrent use.
type Hub struct {
	cfg     Config
	history *history
	past    *past
	streams atomic.Int64

	mu    sync.Mutex
	store objdb.Store    // nil until Run
	each  map[string]int // streams by who asks
}

// NewHub makes a Hub. Until Run it answers that it is not ready.
func NewHub(cfg Config) *Hub {
	orDefault(&cfg.Heartbeat, defaultHeartbeat)
	orDefault(&cfg.Patience, defaultPatience)
	orDefault(&cfg.MaxStreams, defaultMaxStreams)
	orDefault(&cfg.MaxEach, defaultMaxEach)
	orDefault(&cfg.MaxBatches, defaultMaxBatches)
	orDefault(&cfg.MaxBytes, defaultMaxBytes)
	return &Hub{
		cfg: cfg, history: newHistory(cfg.MaxBatches, cfg.MaxBytes), each: map[string]int{},
		past: &past{most: cfg.MaxBatches, mostBytes: cfg.MaxBytes, objects: map[name]json.RawMessage{}},
	}
}

func orDefault[T comparable](v *T, preset T) {
	if *v == *new(T) {
		*v = preset
	}
}

// Run watches the objects in store until ctx ends; then all streams end. It is called
// once.
func (h *Hub) Run(ctx context.Context, store objdb.Store) {
	h.mu.Lock()
	h.store = store
	h.mu.Unlock()
	for b := range store.Watch(ctx, state.ModelRoot) {
		h.past.add(b, time.Now(), h.history.objectOf) // first: who is told of a change finds it here
		h.history.add(b)
	}
	h.history.close()
}

// Ready is closed when the Hub has begun to know the store; until then it serves no
// streams.
func (h *Hub) Ready() <-chan struct{} { return h.history.ready }

// Streams is how many clients there are.
func (h *Hub) Streams() int { return int(h.streams.Load()) }

// ServeHTTP serves a stream: 200 and events until the client goes or the Hub ends; 503
// while the store is unavailable or there are too many clients; 500 for a request that is
// wrong; 404 for another method than GET.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	s, err := h.open(w, r)
	if err == nil {
		defer h.leave(s)
		err = s.run(r.Context())
	}
	switch {
	case err == nil || s != nil && s.begun: // a client that has gone is nobody's error
	case errs.Is(err, errs.Invalid):
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// open makes the stream a request asks for. The caller counts it out again.
func (h *Hub) open(w http.ResponseWriter, r *http.Request) (*stream, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errs.New(errs.Invalid, "query: %w", err)
	}
	h.mu.Lock()
	s := &stream{hub: h, store: h.store, asks: identity.From(r.Context()), w: w, rc: http.NewResponseController(w)}
	h.mu.Unlock()
	if _, _, begun := h.history.end(); s.store == nil || !begun {
		return nil, errs.New(errs.Unavailable, "the store is not connected; try again")
	}
	if s.kinds, err = kinds(query["kind"]); err != nil {
		return nil, err
	}
	text, what := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if text == "" {
		text, what = query.Get("since"), "since"
	}
	if text != "" {
		if s.since, err = strconv.ParseInt(text, 10, 64); err != nil || s.since < 0 {
			return nil, errs.New(errs.Invalid, "%s %q is not a revision: expected the id of an event", what, text)
		}
		s.resume = true
	}
	if h.streams.Add(1) > int64(h.cfg.MaxStreams) {
		h.streams.Add(-1)
		return nil, errs.New(errs.Unavailable, "there are %d streams already; try again later", h.cfg.MaxStreams)
	}
	s.who = who(s.asks, r.RemoteAddr)
	h.mu.Lock()
	h.each[s.who]++
	n := h.each[s.who]
	h.mu.Unlock()
	if n > h.cfg.MaxEach {
		h.leave(s)
		return nil, errs.New(errs.Unavailable, "%s has %d streams already; close one", s.who, h.cfg.MaxEach)
	}
	return s, nil
}

// leave counts a stream out.
func (h *Hub) leave(s *stream) {
	h.streams.Add(-1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.each[s.who]--; h.each[s.who] == 0 {
		delete(h.each, s.who)
	}
}

// who is whose streams are counted together: an identity's, or an address's.
func who(id identity.Identity, remote string) string {
	if id.Kind != identity.Anonymous {
		return id.String()
	}
	return "address " + netx.HostOf(remote)
}

// kinds reads the filter: type strings, separated by commas or given several times;
// nothing means all.
func kinds(values []string) ([]string, error) {
	known := contivmodel.Types()
	var out []string
	for _, v := range values {
		for kind := range strings.SplitSeq(v, ",") {
			if !slices.Contains(known, kind) {
				return nil, errs.New(errs.Invalid, "kind %q is none of %s", kind, strings.Join(known, ", "))
			}
			out = append(out, kind)
		}
	}
	return out, nil
}
