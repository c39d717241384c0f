package intent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a term's writer.
type metrics struct {
	commits *prometheus.CounterVec
	took    prometheus.Histogram
	shared  prometheus.Histogram
	queue   prometheus.GaugeFunc
}

func newMetrics(waiting func() int) *metrics {
	return &metrics{
		commits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "contiv_netmaster_commits_total", Help: "Transactions with the store in this term, by result.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "contiv_netmaster_commit_seconds", Help: "Time for the store to carry a transaction out.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		shared: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "contiv_netmaster_commit_requests", Help: "Requests that share a transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		queue: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "contiv_netmaster_queue", Help: "Requests that wait for the writer.",
		}, func() float64 { return float64(waiting()) }),
	}
}

// count counts a transaction shared by n requests.
func (m *metrics) count(n int, took time.Duration, err error) {
	result := "committed"
	if err != nil {
		result = "failed"
	}
	m.commits.WithLabelValues(result).Inc()
	m.took.Observe(took.Seconds())
	m.shared.Observe(float64(n))
}

// Collect exports the term's metrics.
func (e *Engine) Collect(out chan<- prometheus.Metric) {
	m := e.writer.metrics
	for _, c := range []prometheus.Collector{m.commits, m.took, m.shared, m.queue} {
		c.Collect(out)
	}
}
