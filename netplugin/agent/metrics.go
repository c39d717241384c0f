package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/objdb"
)

// metrics is what an agent counts of the watch.
type metrics struct {
	events prometheus.Counter
	took   prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_agent_events_total", Help: "Records that the watch of the store has added, changed or removed.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "contiv_agent_apply_seconds", Help: "Time to declare what one batch of the watch says.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}),
	}
}

func (m *metrics) count(batch objdb.Batch, took time.Duration) {
	m.events.Add(float64(len(batch.Events)))
	m.took.Observe(took.Seconds())
}

// Collector exports the agent's numbers; docs/metrics.md lists them.
func (a *Agent) Collector() prometheus.Collector { return collector{a} }

type collector struct{ a *Agent }

var (
	descRevision = prometheus.NewDesc("contiv_agent_applied_revision", "Store revision up to which the state has been declared to the driver.", nil, nil)
	descObjects  = prometheus.NewDesc("contiv_agent_objects", "Records that concern the host, by kind: of endpoints, rules and services those of tenants that it has something of.", []string{"kind"}, nil)
	descPacked   = prometheus.NewDesc("contiv_agent_packed_bytes", "Memory of the packed records of endpoints, rules and services of all tenants.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	out <- descRevision
	out <- descObjects
	out <- descPacked
	c.a.metrics.events.Describe(out)
	c.a.metrics.took.Describe(out)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	st := c.a.Status()
	out <- prometheus.MustNewConstMetric(descRevision, prometheus.GaugeValue, float64(st.Revision))
	out <- prometheus.MustNewConstMetric(descPacked, prometheus.GaugeValue, float64(st.Packed))
	for kind, n := range map[string]int{
		"network": st.Networks, "endpoint": st.Endpoints, "host": st.Hosts, "rule": st.Rules, "service": st.Services,
	} {
		out <- prometheus.MustNewConstMetric(descObjects, prometheus.GaugeValue, float64(n), kind)
	}
	c.a.metrics.events.Collect(out)
	c.a.metrics.took.Collect(out)
}
