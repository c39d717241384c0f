package systemtests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/test/lab"
)

// TestDenials: a container sends a thousand packets a second that are denied, to a thousand
// ports, for 20 s, or for an hour with CONTIV_LONG. The agent's memory stays bounded, and what
// it did not look at is told as gaps: nothing is missing without a word.
func TestDenials(t *testing.T) {
	const perSecond, logSize = 1000, 8
	lasts := 20 * time.Second
	if os.Getenv("CONTIV_LONG") != "" {
		lasts = time.Hour
	}
	c := up(t, lab.Config{Hosts: 1, AgentFlags: []string{fmt.Sprint("--flow-log-size=", logSize)}})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=udp", "--action=deny", "--wait")
	web := c.attachGroup("host1", "web", "net", "web")
	c.attach("host1", "noisy", "net")
	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	const memory, cpu = "process_resident_memory_bytes", "process_cpu_seconds_total"
	burst := fmt.Sprintf("bash -c 'for i in {1..%d}; do echo > /dev/udp/%s/$((1000 + RANDOM %% 30000)); done'; sleep 0.5", perSecond, web.IPv4)
	c.run("noisy", burst)
	before := c.text(h, "/metrics")
	sent, most := perSecond, metric(before, memory)
	began := time.Now()
	for ; time.Since(began) < lasts; sent += perSecond {
		c.run("noisy", burst)
		most = max(most, metric(c.text(h, "/metrics"), memory))
	}
	took := time.Since(began)
	after := c.text(h, "/metrics")
	t.Logf("%d denied packets at %.0f per second: the agent took %.1f %% of a processor, and %.0f MiB more memory than before, at most",
		sent, float64(sent-perSecond)/took.Seconds(), 100*(metric(after, cpu)-metric(before, cpu))/took.Seconds(), (most-metric(before, memory))/(1<<20))
	if grown := most - metric(before, memory); grown > (logSize+40)<<20 {
		t.Errorf("the agent's memory has grown by %.0f MiB with a log of %d MiB", grown/(1<<20), logSize)
	}
	c.eventually("every denied packet is recorded or told as left out", func() error {
		text := c.text(h, "/metrics")
		made, left := metric(text, "contiv_flow_records_total"), metric(text, "contiv_flow_left_out_total")
		denied := metric(text, `contiv_ovs_dropped_packets_total{bridge="contivVxlanBridge",reason="deny"}`)
		// Some to the same port within a second are one record; the switch may lose some before.
		if made+left < 0.98*denied || denied < float64(sent)/2 {
			return fmt.Errorf("%.0f records and %.0f left out, of %.0f denied and %d sent", made, left, denied, sent)
		}
		return nil
	})
	if told := c.gapsOf(h); told["more packets were denied than the switch hands over"] == 0 {
		t.Errorf("gaps: %v", told)
	}
}

// gapsOf counts what the log of a host says that it left out, by reason.
func (c cluster) gapsOf(h *lab.Host) map[string]uint64 {
	c.t.Helper()
	resp, err := h.HTTP().Get("http://127.0.0.1:9090" + flowapi.PathAgent + "?limit=1")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	told := map[string]uint64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var e flowapi.Event
		if err := json.NewDecoder(strings.NewReader(lines.Text())).Decode(&e); err != nil {
			c.t.Fatalf("%s: %v", lines.Text(), err)
		}
		if e.Gap != nil {
			told[e.Gap.Why] += e.Gap.Count
		}
	}
	return told
}
