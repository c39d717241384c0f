package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// BenchmarkIdle: what a daemon costs that has nothing to do: processor time in percent of one
// processor, and how often its threads wake up in a second. Two hosts with ten containers
// each, one netmaster with the embedded store; beside them ovs-vswitchd, the floor.
func BenchmarkIdle(b *testing.B) {
	l := labtest.Up(b, lab.Config{Hosts: 2, Masters: 1})
	if _, err := l.NetctlOutput(b.Context(), "net", "create", "bench", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254", "--subnetv6=2001:db8:1::/64", "--gatewayv6=2001:db8:1::fe"); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		if _, err := l.Attach(b.Context(), lab.Attachment{Host: lab.HostName(1 + i%2), Name: fmt.Sprint("c", i), Network: "bench"}); err != nil {
			b.Fatal(err)
		}
	}
	h := l.Hosts()[0]
	daemons := []string{"netmaster", "netplugin", "ovs-vswitchd"}
	for b.Loop() {
		time.Sleep(20 * time.Second) // what the containers' start has caused is over
		before := map[string]usage{}
		for _, d := range daemons {
			before[d] = usageOf(b, h, d)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		for _, d := range daemons {
			now, s := usageOf(b, h, d), time.Since(began).Seconds()
			b.ReportMetric(100*(now.cpu-before[d].cpu).Seconds()/s, d+"-%")
			b.ReportMetric(float64(now.wakes-before[d].wakes)/s, d+"-wakes/s")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// usage is what a process has used: processor time, and how often its threads have waited.
type usage struct {
	cpu   time.Duration
	wakes int64
}

// usageOf reads it from /proc, where a host sees its own processes only (proc(5)).
func usageOf(b *testing.B, h *lab.Host, daemon string) (u usage) {
	b.Helper()
	out, err := h.Output(b.Context(), "sh", "-c", "cat /proc/$(pidof -s "+daemon+")/stat /proc/$(pidof -s "+daemon+")/task/*/status")
	if err != nil {
		b.Fatal(err)
	}
	stat, status, _ := strings.Cut(out, "\n")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	for _, f := range fields[11:13] { // utime, stime, in clock ticks of 10 ms
		u.cpu += time.Duration(number(b, f)) * 10 * time.Millisecond
	}
	for line := range strings.Lines(status) {
		if n, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
			u.wakes += number(b, strings.TrimSpace(n))
		}
	}
	return u
}

func number(b *testing.B, text string) int64 {
	b.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
