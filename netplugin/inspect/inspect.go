// Package inspect is the agent's REST API on port 9090: what the agent and its switch
// look like, whether they are healthy, and metrics.
package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/httproutes"
	"github.com/contiv/netplugin/utils/version"
)

// Sources are what the API shows. Every function must be safe for concurrent use.
type Sources struct {
	Driver  func() map[string]any                              // state of the bridges
	Agent   func() any                                         // the agent in numbers
	Names   func() any                                         // what the name server knows; nil without one
	BGP     func(ctx context.Context) (any, error)             // the BGP speaker; the error says why there is none
	Reclaim func(ctx context.Context, endpointID string) error // remove a local endpoint
	// Services tells what containers of this host have exchanged with providers.
	Services func(ctx context.Context) ([]drivers.ServiceCount, error)
	// Trace tells the way of a packet through the host.
	Trace func(ctx context.Context, req traceapi.HopRequest) (*traceapi.Hop, error)
	// Rules tells how often each rule has decided on this host.
	Rules func(ctx context.Context) (map[string]drivers.Hits, error)
	// Flows is the log of connections; nil without one.
	Flows Flows
	// Policies are the NetworkPolicies of this host's pods; nil: there are none.
	Policies Policies
	// Kubernetes are the Services of Kubernetes; nil: somebody else leads to them.
	Kubernetes Services
	// Checks name what must hold for the agent to serve; a nil result holds.
	Checks map[string]func() error
	// Notes tell what does not keep the agent from serving, but should be known.
	Notes   func() map[string]string
	Metrics prometheus.Gatherer

	Host string // the host's label
	// Support are the files of this host for support bundles, by name. They are without secrets.
	Support map[string]func(ctx context.Context, w io.Writer) error
	// Certificate is when the host's certificate counts; nil: it has none.
	Certificate func() *doctorapi.Certificate
	// Examine tells what is needed to find out what is wrong with the switch; nil: nothing.
	Examine func(ctx context.Context) doctorapi.Switch
	// Probe sends frames through tunnels and returns how many; nil: that cannot be asked for.
	Probe func(ctx context.Context, p doctorapi.Probe) (sent int, err error)
}

// Handler returns the routes.
func Handler(s Sources) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /inspect/driver", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Driver()) })
	mux.HandleFunc("GET /inspect/agent", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Agent()) })
	mux.HandleFunc("GET /inspect/nameserver", func(w http.ResponseWriter, _ *http.Request) {
		if s.Names == nil {
			http.Error(w, "Error fetching nameserver state", http.StatusInternalServerError)
			return
		}
		reply(w, http.StatusOK, s.Names())
	})
	mux.HandleFunc("GET /inspect/bgp", func(w http.ResponseWriter, r *http.Request) {
		state, err := s.BGP(r.Context())
		if err != nil {
			http.Error(w, "Error fetching bgp: "+err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, http.StatusOK, state)
	})
	mux.HandleFunc("GET /inspect/rules", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		hits, err := s.Rules(ctx)
		if err != nil {
			http.Error(w, "Error fetching rules from driver: "+err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, http.StatusOK, hits)
	})
	mux.HandleFunc("GET /svcstats", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		counts, err := s.Services(ctx)
		if err != nil {
			http.Error(w, "Error fetching stats from driver: "+err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, http.StatusOK, serviceStats(counts))
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, version.Get()) })
	mux.HandleFunc("DELETE /debug/reclaimEndpoint/{id}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		switch err := s.Reclaim(ctx, r.PathValue("id")); {
		case err == nil:
			reply(w, http.StatusOK, nil)
		case errs.Is(err, errs.NotFound):
			http.Error(w, err.Error(), http.StatusNotFound)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST "+traceapi.PathAgent, s.trace)
	mux.HandleFunc("GET "+flowapi.PathAgent, s.flows)
	mux.HandleFunc("GET "+flowapi.PathAgentHits, s.hits)
	mux.HandleFunc("POST "+flowapi.PathAgentAsk, s.explain)
	mux.HandleFunc("POST "+flowapi.PathAgentOf, s.service)
	mux.HandleFunc("POST "+flowapi.PathAgentTests, s.preview)
	mux.HandleFunc("GET "+doctorapi.PathAgent, s.doctor)
	mux.HandleFunc("GET "+doctorapi.PathAgentSupport+"{name}", s.support)
	if s.Probe != nil {
		mux.HandleFunc("POST "+doctorapi.PathProbe, s.probe)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.report()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := s.report()
		status := http.StatusOK
		if !r.Ready {
			status = http.StatusServiceUnavailable
		}
		reply(w, status, r)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{}))
	return httproutes.OrNotFound(mux)
}

// Report says whether the agent serves, and if not, what it waits for.
type Report struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok" or what is missing
	// Notes tell what has happened that should not, although all is well again.
	Notes map[string]string `json:"notes,omitempty"`
}

func (s Sources) report() Report {
	r := Report{Ready: true, Checks: map[string]string{}}
	if s.Notes != nil {
		r.Notes = s.Notes()
	}
	for name, check := range s.Checks {
		r.Checks[name] = "ok"
		if err := check(); err != nil {
			r.Ready = false
			r.Checks[name] = err.Error()
		}
	}
	return r
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Serve listens on addr until ctx ends. secure, if not nil, puts the listener behind TLS.
func Serve(ctx context.Context, addr string, secure func(net.Listener) net.Listener, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return errs.New(errs.Unavailable, "serve on %s: %w; is another netplugin running?", addr, err)
	}
	if secure != nil {
		l = secure(l)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = srv.Shutdown(grace)
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return errs.New(errs.Unavailable, "serve on %s: %w", addr, err)
	}
	<-stopped
	return nil
}
