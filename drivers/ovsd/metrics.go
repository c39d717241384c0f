package ovsd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/ofnet"
)

// Collector exports the driver's numbers, one series per bridge.
func (d *Driver) Collector() prometheus.Collector { return collector{d} }

type collector struct{ d *Driver }

var (
	descConnected = describe("connected", "Whether the OpenFlow channel is up and the bridge's flows are known.")
	descDesired   = describe("flows_desired", "Flows that are wanted.")
	descActual    = describe("flows_actual", "Flows in the bridge.")
	descPending   = describe("flows_pending", "Flows still to be added, changed or removed.")
	descRefused   = describe("flows_refused", "Flows the bridge refuses.")
	descSent      = describe("flow_mods_total", "Flow-mods sent since the agent started.")
	descMalformed = describe("malformed_packets_total", "Packets for the agent that it dropped because they make no sense.")
	descConnects  = describe("channel_connects_total", "OpenFlow channels opened since the agent started.")
)

var (
	descRulePackets = prometheus.NewDesc("contiv_policy_rule_packets_total", "Packets that a rule has decided on: openings of connections, and what it denies.", []string{"rule"}, nil)
	descRuleBytes   = prometheus.NewDesc("contiv_policy_rule_bytes_total", "Bytes of the packets that a rule has decided on.", []string{"rule"}, nil)
)

// rulesWithin bounds how long a scrape waits for the switches' counters.
const rulesWithin = 5 * time.Second

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("contiv_ovs_"+name, help, []string{"bridge"}, nil)
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descConnected, descDesired, descActual, descPending, descRefused, descSent, descConnects, descMalformed,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, encap := range []ofnet.Encap{ofnet.VLAN, ofnet.VXLAN} {
		s := c.d.sides[encap]
		st := s.sw.Status()
		gauge := func(desc *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, s.bridge)
		}
		connected := 0.0
		if st.Connected {
			connected = 1
		}
		gauge(descConnected, connected)
		gauge(descDesired, float64(st.Desired))
		gauge(descActual, float64(st.Actual))
		gauge(descPending, float64(st.Pending))
		gauge(descRefused, float64(st.Refused))
		ch <- prometheus.MustNewConstMetric(descSent, prometheus.CounterValue, float64(st.Sent), s.bridge)
		ch <- prometheus.MustNewConstMetric(descConnects, prometheus.CounterValue, float64(st.Connects), s.bridge)
		ch <- prometheus.MustNewConstMetric(descMalformed, prometheus.CounterValue, float64(st.Malformed), s.bridge)
	}
	ctx, cancel := context.WithTimeout(context.Background(), rulesWithin)
	defer cancel()
	hits, err := c.d.RuleHits(ctx)
	if err != nil {
		return // a switch is away, which the other series tell
	}
	for id, h := range hits {
		ch <- prometheus.MustNewConstMetric(descRulePackets, prometheus.CounterValue, float64(h.Packets), id)
		ch <- prometheus.MustNewConstMetric(descRuleBytes, prometheus.CounterValue, float64(h.Bytes), id)
	}
}
