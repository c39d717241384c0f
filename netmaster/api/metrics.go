package api

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/intent"
)

// metrics is what is told of a term: requests by route, the writer, and how far each
// host is behind what has been written for it.
type metrics struct {
	engine  *intent.Engine
	members *cluster.Members
	latency *prometheus.HistogramVec
	written *prometheus.Desc
	lag     *prometheus.Desc
}

func newMetrics(e *intent.Engine, members *cluster.Members) *metrics {
	return &metrics{
		engine: e, members: members,
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "contiv_netmaster_route_seconds", Help: "Time from a request to the leader's answer, by route.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 7),
		}, []string{"method", "route"}),
		written: prometheus.NewDesc("contiv_netmaster_written_revision", "Store revision of the last change that hosts have to apply.", nil, nil),
		lag:     prometheus.NewDesc("contiv_netmaster_host_lag_revisions", "Store revisions that a registered host is behind that.", []string{"host"}, nil),
	}
}

var pathVariable = regexp.MustCompile(`\{([a-z]+):[^}]*\}`)

// observe measures a request under the pattern of its path, of which there are few.
func (m *metrics) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		next.ServeHTTP(w, r)
		path, err := mux.CurrentRoute(r).GetPathTemplate()
		if err != nil {
			return
		}
		route := pathVariable.ReplaceAllString(strings.TrimSuffix(path, slash), "{$1}")
		m.latency.WithLabelValues(r.Method, route).Observe(time.Since(began).Seconds())
	})
}

// Collect exports the numbers of the term.
func (h *Handler) Collect(out chan<- prometheus.Metric) {
	m := h.metrics
	m.latency.Collect(out)
	m.engine.Collect(out)
	revision, settings := m.engine.Written()
	out <- prometheus.MustNewConstMetric(m.written, prometheus.GaugeValue, float64(revision))
	registered, _ := m.members.Agents()
	for _, host := range cluster.Join(m.members.Hosts(), nil, revision, settings) {
		if _, ok := registered[host.Host]; ok {
			out <- prometheus.MustNewConstMetric(m.lag, prometheus.GaugeValue, float64(host.Lag), host.Host)
		}
	}
}
