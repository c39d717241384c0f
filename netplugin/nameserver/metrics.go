package nameserver

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is what became of a query; its text is a label of the metrics.
type result string

const (
	answered  result = "answered"  // with records of ours
	empty     result = "nodata"    // a name of ours without a record of the type
	nxDomain  result = "nxdomain"  // below our domain, and not there
	passed    result = "passed"    // went on to the server it was for
	forwarded result = "forwarded" // answered by a resolver of the host
	failed    result = "failed"    // no resolver answered
	refused   result = "refused"
	limited   result = "limited" // too much was under way
	invalid   result = "invalid" // no query

	askOthers result = "" // not yet anything
)

// Counters are a tenant's queries, under the names that inspection has always had.
type Counters struct {
	Found   uint64 `json:"foundNameRecord,omitempty"`
	NotOurs uint64 `json:"noNameRecord,omitempty"`
	Invalid uint64 `json:"invalidQuery,omitempty"`
}

type metrics struct {
	queries *prometheus.CounterVec
	latency prometheus.Histogram

	mu       sync.Mutex
	byTenant map[string]Counters
}

func newMetrics() *metrics {
	m := &metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "contiv_dns_queries_total", Help: "Name queries of containers, by what became of them.",
		}, []string{"result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "contiv_dns_duration_seconds", Help: "Time from a name query to its answer, or to its going on.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10),
		}),
		byTenant: map[string]Counters{},
	}
	for _, r := range []result{answered, empty, nxDomain, passed, forwarded, failed, refused, limited, invalid} {
		m.queries.WithLabelValues(string(r))
	}
	return m
}

func (m *metrics) count(tenant string, r result, took time.Duration) {
	m.queries.WithLabelValues(string(r)).Inc()
	m.latency.Observe(took.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.byTenant[tenant]
	switch r {
	case answered, empty:
		c.Found++
	case invalid:
		c.Invalid++
	default:
		c.NotOurs++
	}
	m.byTenant[tenant] = c
}

// Collectors export the numbers of a Server.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.queries, s.metrics.latency}
}
