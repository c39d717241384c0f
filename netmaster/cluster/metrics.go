package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/state/clusterapi"
)

// hostsByState is the number of hosts in each state.
func hostsByState() *prometheus.Desc {
	return prometheus.NewDesc("contiv_netmaster_hosts", "Hosts that are registered or have reported, by state.", []string{"state"}, nil)
}

// Removed counts hosts that were removed because they stayed down, and the endpoints that
// were removed with them.
func (m *Members) Removed(hosts, endpoints int) {
	m.removedHosts.Add(float64(hosts))
	m.removedEndpoints.Add(float64(endpoints))
}

// Describe implements prometheus.Collector.
func (m *Members) Describe(out chan<- *prometheus.Desc) {
	out <- hostsByState()
	m.removedHosts.Describe(out)
	m.removedEndpoints.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *Members) Collect(out chan<- prometheus.Metric) {
	count := map[string]int{clusterapi.Up: 0, clusterapi.Degraded: 0, clusterapi.Silent: 0, clusterapi.Gone: 0}
	for _, h := range m.Hosts() {
		count[h.State]++
	}
	for state, n := range count {
		out <- prometheus.MustNewConstMetric(hostsByState(), prometheus.GaugeValue, float64(n), state)
	}
	m.removedHosts.Collect(out)
	m.removedEndpoints.Collect(out)
}
