package flowlog

import "github.com/prometheus/client_golang/prometheus"

var (
	descRecords = prometheus.NewDesc("contiv_flow_records_total", "Records of connections and denials that the flow log has made.", nil, nil)
	descLeftOut = prometheus.NewDesc("contiv_flow_left_out_total", "Packets and records that the flow log had no room or no time for.", nil, nil)
	descKept    = prometheus.NewDesc("contiv_flow_records", "Records in the flow log.", nil, nil)
	descBytes   = prometheus.NewDesc("contiv_flow_bytes", "Memory of the flow log's records.", nil, nil)
	descOpen    = prometheus.NewDesc("contiv_flow_connections", "Tracked connections at the last reading of the switch's table.", nil, nil)
	descReaders = prometheus.NewDesc("contiv_flow_readers", "Readers that follow the flow log.", nil, nil)
	descReading = prometheus.NewDesc("contiv_flow_reading_seconds", "How long the last reading of the switch's table took.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRecords, descLeftOut, descKept, descBytes, descOpen, descReaders, descReading} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d, n := range map[*prometheus.Desc]uint64{descRecords: l.stats.records, descLeftOut: l.stats.missed} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	for d, v := range map[*prometheus.Desc]float64{
		descKept: float64(l.ring.len()), descBytes: float64(l.ring.bytes()), descOpen: float64(l.stats.open), descReaders: float64(len(l.readers)),
		descReading: l.stats.took.Seconds(),
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
}
