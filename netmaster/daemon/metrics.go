package daemon

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/utils/httproutes"
	"github.com/contiv/netplugin/utils/version"
)

// metrics is what the daemon counts of itself.
type metrics struct {
	terms     prometheus.Counter
	forwarded prometheus.Counter
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

func newMetrics(reg *prometheus.Registry, v version.Info, s *leaderState, hub *events.Hub) (*metrics, error) {
	m := &metrics{
		terms: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_leader_terms_total", Help: "How often this process became the leader.",
		}),
		forwarded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_forwarded_requests_total", Help: "Requests passed on to the leader.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "contiv_netmaster_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "contiv_netmaster_http_request_seconds", Help: "Time from a request to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"method"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "contiv_netmaster_build_info", Help: "1, labelled with the build.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.GitCommit, "built": v.BuildTime},
	}, func() float64 { return 1 })
	leading := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "contiv_netmaster_leader", Help: "1 while this process leads and serves, else 0.",
	}, func() float64 {
		if s.view().controller != nil {
			return 1
		}
		return 0
	})
	watching := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "contiv_netmaster_event_streams", Help: "Clients that follow the events of the objects.",
	}, func() float64 { return float64(hub.Streams()) })
	for _, c := range []prometheus.Collector{
		m.terms, m.forwarded, m.requests, m.latency, build, leading, watching,
		term{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of netmaster: %w", err)
		}
	}
	return m, nil
}

// count measures what next serves.
func (m *metrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, ok := w.(*httproutes.Recorder)
		if !ok {
			rec = &httproutes.Recorder{ResponseWriter: w}
		}
		began, served := time.Now(), false
		method := knownMethod(r.Method)
		defer func() {
			m.requests.WithLabelValues(method, strconv.Itoa(rec.Ended(served))).Inc()
			m.latency.WithLabelValues(method).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(rec, r)
		served = true
	})
}

// knownMethod keeps clients from inventing time series.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead:
		return method
	}
	return "other"
}

// term exports what the Controller has to tell, while there is one.
type term struct{ state *leaderState }

// Describe implements prometheus.Collector. What is told depends on the Controller.
func (term) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (t term) Collect(out chan<- prometheus.Metric) {
	if c, ok := t.state.view().controller.(interface {
		Collect(chan<- prometheus.Metric)
	}); ok {
		c.Collect(out)
	}
}
