package daemon

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/contiv/netplugin/netmaster/api"
	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/utils/httproutes"
)

// hop is the header by which a netmaster marks a request it passes on, so that two
// which each take the other for the leader do not play ball with it.
const hop = "X-Contiv-Forwarded-By"

// notServed is the header of an answer that says: sent to the wrong one, nothing has
// happened.
const notServed = "X-Contiv-Not-Served"

// routes is everything this process answers, whoever leads.
func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", d.serveVersion)
	mux.HandleFunc("GET /info", d.serveInfo)
	mux.HandleFunc("GET /healthz", d.serveHealth)
	mux.HandleFunc("GET /readyz", d.serveReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.cfg.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET "+events.PathChanges, d.events.ServeChanges)
	mux.HandleFunc("GET "+events.PathChanges+"/{$}", d.events.ServeChanges)
	own := dispatch{own: httproutes.OrNotFound(mux), page: d.cfg.Page, api: http.HandlerFunc(d.serveAPI)}
	var all http.Handler = streams{
		events: d.whileTheSame(d.events), alive: http.HandlerFunc(d.serveAlive),
		flows: d.whileTheSame(d.unlimited(http.HandlerFunc(d.serveAPI))), rest: d.metrics.count(d.local(own)),
	}
	if gate := d.cfg.Security.Gate; gate != nil {
		all = gate(all)
	}
	return d.shield(d.identify(all))
}

// streams keeps answers without end apart from the others: how long one lasts says
// nothing about how fast we answer.
type streams struct{ events, alive, flows, rest http.Handler }

func (h streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case r.Method == http.MethodGet && path == events.Path:
		h.events.ServeHTTP(w, r)
	case r.Method == http.MethodGet && path == alivePath:
		h.alive.ServeHTTP(w, r)
	case api.IsStream(r):
		h.flows.ServeHTTP(w, r)
	default:
		h.rest.ServeHTTP(w, r)
	}
}

// dispatch keeps this process to its own paths. Everything else reaches the API with its
// path as it was sent: a mux would clean it.
type dispatch struct {
	own, api http.Handler
	page     http.Handler // nil: there is none
}

func (h dispatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/version" || path == "/info" || path == "/healthz" || path == "/readyz" || path == "/metrics":
		h.own.ServeHTTP(w, r)
	case strings.TrimSuffix(path, "/") == events.PathChanges:
		h.own.ServeHTTP(w, r)
	case h.page != nil && ui.Serves(path):
		h.page.ServeHTTP(w, r)
	default:
		h.api.ServeHTTP(w, r)
	}
}

// shield bounds what a request may send, and keeps the daemon alive whatever a handler
// does.
func (d *Daemon) shield(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		rec := &httproutes.Recorder{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p != http.ErrAbortHandler { // which only means "break off the answer"
				d.log.WithField("method", r.Method).WithField("path", r.URL.Path).
					WithField("panic", p).WithField("stack", string(debug.Stack())).Error("a request handler panicked")
				if rec.Code == 0 {
					http.Error(w, "internal error, see the log of netmaster", http.StatusInternalServerError)
					return
				}
			}
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				conn.Close()
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// serveAPI finds who answers a request: the Controller of this process, or the leader.
// While there is neither, the request waits a little.
func (d *Daemon) serveAPI(w http.ResponseWriter, r *http.Request) {
	passedOn := r.Header.Get(hop) != ""
	expired := time.NewTimer(holdRequests)
	defer expired.Stop()
	tried := "" // why the leader did not take it
	for {
		v := d.state.view()
		var again <-chan time.Time
		switch {
		case v.controller != nil && d.gate.enter():
			defer d.gate.leave()
			if err := rewind(r); err != nil {
				http.Error(w, "cannot read the request body: "+err.Error(), http.StatusBadRequest)
				return
			}
			v.controller.ServeHTTP(w, r)
			return
		case passedOn && (!v.leading || v.stopping):
			// Whoever sent it has kept it, and finds out who leads as fast as we do.
			w.Header().Set(notServed, "true")
			refuse(w, "this netmaster does not lead any more")
			return
		case v.leader != "" && v.leader != d.cfg.Address:
			if tried = d.forward(w, r, v.leader); tried == "" {
				return
			}
			t := time.NewTimer(100 * time.Millisecond) // it may be restarting
			defer t.Stop()
			again = t.C
		}
		select {
		case <-v.changed:
		case <-again:
		case <-r.Context().Done():
			return
		case <-expired.C:
			refuse(w, d.whyNot(d.state.view(), tried))
			return
		}
	}
}

// whyNot explains to a user why a request cannot be served now.
func (d *Daemon) whyNot(v view, tried string) string {
	_, storeErr := d.storeState()
	switch {
	case v.stopping:
		return "this netmaster is stopping"
	case storeErr != "":
		return "the store is unavailable: " + storeErr
	case v.leading:
		return "the leader is not ready: " + v.waiting
	case v.leader == "" || v.leader == d.cfg.Address || tried == "":
		return "Leader not found: no netmaster holds the lock at the moment"
	}
	return "the leader " + v.leader + " " + tried
}

// refuse answers that the same request may succeed later.
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why+"; try again", http.StatusServiceUnavailable)
}
