package ovsd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/ofnet"
)

// scrapeTimeout limits the wait for the switch when metrics are read.
const scrapeTimeout = 5 * time.Second

// Collector exports the driver's metrics; docs/metrics.md lists them.
func (d *Driver) Collector() prometheus.Collector { return collector{d} }

type collector struct{ d *Driver }

var (
	descConnected = describe("connected", "Whether the OpenFlow channel is up and the bridge's flows are known.", "bridge")
	descDesired   = describe("flows_desired", "Flows that are wanted.", "bridge")
	descActual    = describe("flows_actual", "Flows in the bridge.", "bridge")
	descPending   = describe("flows_pending", "Flows still to be added, changed or removed.", "bridge")
	descRefused   = describe("flows_refused", "Flows the bridge refuses.", "bridge")
	descGroups    = describe("groups_actual", "Groups in the bridge.", "bridge")
	descMeters    = describe("meters_actual", "Meters in the bridge.", "bridge")
	descSent      = describe("flow_mods_total", "Flow-mods sent since the agent started.", "bridge")
	descConnects  = describe("channel_connects_total", "OpenFlow channels opened since the agent started.", "bridge")
	descRestarts  = describe("restarts_total", "How often the bridge came back without its flows since the agent started: ovs-vswitchd had ended.", "bridge")
	descPacketIns = describe("packet_ins_total", "Packets that the bridge has given the agent since it started, by kind; malformed ones were dropped.", "bridge", "kind")
	descDrops     = describe("dropped_packets_total", "Packets that the bridge has dropped, by the table where they ended, or the limit they exceeded.", "bridge", "reason")
	descForeign   = describe("foreign_tunnel_packets_total", "Tunnelled packets dropped because they came from an address that is no host's of the cluster.", "bridge")
	descPorts     = describe("ports", "Ports that endpoints of this host have.")
	descPeers     = describe("tunnel_peers", "Hosts that tunnels lead to.")
	descEndpoints = describe("endpoints", "Endpoints that have been declared, by where they are.", "where")

	descRulePackets = prometheus.NewDesc("contiv_policy_rule_packets_total", "Packets that a rule has decided on: openings of connections, and what it denies.", []string{"rule"}, nil)
	descRuleBytes   = prometheus.NewDesc("contiv_policy_rule_bytes_total", "Bytes of the packets that a rule has decided on.", []string{"rule"}, nil)
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("contiv_ovs_"+name, help, labels, nil)
}

func newPushHistogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "contiv_ovs_reconcile_seconds", Help: "Time for the bridge to carry out the changes of one bundle.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	}, []string{"bridge"})
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descConnected, descDesired, descActual, descPending, descRefused, descGroups, descMeters, descSent, descConnects, descRestarts,
		descPacketIns, descDrops, descForeign, descRulePackets, descRuleBytes, descPorts, descPeers, descEndpoints,
	} {
		ch <- desc
	}
	c.d.pushes.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, encap := range []ofnet.Encap{ofnet.VLAN, ofnet.VXLAN} {
		c.bridge(ch, c.d.bridges[encap])
	}
	c.d.pushes.Collect(ch)
	c.rules(ch)
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	local := 0
	for _, e := range c.d.compiler.Endpoints {
		if e.Local {
			local++
		}
	}
	gauge := func(desc *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(descPorts, len(c.d.compiler.Ports))
	gauge(descPeers, len(c.d.compiler.Peers()))
	gauge(descEndpoints, local, "local")
	gauge(descEndpoints, len(c.d.compiler.Endpoints)-local, "remote")
}

// bridge exports the metrics of one bridge.
func (c collector) bridge(ch chan<- prometheus.Metric, s *bridge) {
	st := s.sw.Status()
	put := func(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, v, append([]string{s.name}, labels...)...)
	}
	connected := 0.0
	if st.Connected {
		connected = 1
	}
	put(descConnected, prometheus.GaugeValue, connected)
	for desc, n := range map[*prometheus.Desc]int{
		descDesired: st.Desired, descActual: st.Actual, descPending: st.Pending, descRefused: st.Refused, descGroups: st.Groups, descMeters: st.Meters,
	} {
		put(desc, prometheus.GaugeValue, float64(n))
	}
	put(descSent, prometheus.CounterValue, float64(st.Sent))
	put(descRestarts, prometheus.CounterValue, float64(st.Restarts))
	put(descConnects, prometheus.CounterValue, float64(st.Connects))
	for kind, n := range map[string]uint64{"dns": st.Queries, "neighbor": st.Solicitations, "reject": st.Rejections, "denied": st.Denials, "malformed": st.Malformed} {
		put(descPacketIns, prometheus.CounterValue, float64(n), kind)
	}
	c.asked(s, put)
}

// asked exports what only the switch knows. It is left out while the switch does not
// answer.
func (c collector) asked(s *bridge, put func(*prometheus.Desc, prometheus.ValueType, float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.d.mu.Lock()
	p := c.d.pipeline(s)
	c.d.mu.Unlock()
	if p == nil {
		return
	}
	if drops, err := s.sw.Drops(ctx, p.Tables()); err == nil {
		if s.encap == ofnet.VXLAN {
			put(descForeign, prometheus.CounterValue, float64(drops[ofnet.DropForeign]))
		}
		for reason, n := range drops {
			put(descDrops, prometheus.CounterValue, float64(n), reason)
		}
	}
}

// rules exports the counters of rules. They are left out while a switch is unavailable.
func (c collector) rules(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	hits, err := c.d.RuleHits(ctx)
	if err != nil {
		return
	}
	for id, h := range hits {
		ch <- prometheus.MustNewConstMetric(descRulePackets, prometheus.CounterValue, float64(h.Packets), id)
		ch <- prometheus.MustNewConstMetric(descRuleBytes, prometheus.CounterValue, float64(h.Bytes), id)
	}
}
