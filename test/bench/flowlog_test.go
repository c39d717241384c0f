package bench

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// logging is a host with two containers and one way of logging their connections.
type logging struct {
	pair
	client lab.Container
	target string // where the other container accepts connections
}

func withLog(b *testing.B, which string) logging {
	b.Helper()
	l := labtest.Up(b, lab.Config{Hosts: 1, AgentFlags: []string{"--flow-log=" + which, "--connection-rate=0"}})
	for _, args := range []string{
		"net create bench --subnet=20.1.0.0/16 --gateway=20.1.255.254",
		"policy create guard", "group create bench web --policy guard --wait",
	} {
		if _, err := l.NetctlOutput(b.Context(), strings.Fields(args)...); err != nil {
			b.Fatal(err)
		}
	}
	var all []lab.Container
	for n := range 2 {
		c, err := l.Attach(b.Context(), lab.Attachment{Host: "host1", Name: fmt.Sprintf("c%d", n), Network: "bench", Group: "web"})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, c)
	}
	serve(b, l, all[1], "8080")
	return logging{pair{l: l, from: []string{"c0"}, to: []string{"c1"}, address: all[1].IPv4}, all[0], net.JoinHostPort(all[1].IPv4, "8080")}
}

// connect opens and closes connections one after the other, not faster than a rate if that
// is not 0, and returns how many a second.
func (g logging) connect(b *testing.B, n int, rate float64) float64 {
	b.Helper()
	var took time.Duration
	within(b, g.l, g.client, func() error {
		began := time.Now()
		for i := range n {
			if rate > 0 {
				time.Sleep(time.Until(began.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
			}
			conn, err := net.DialTimeout("tcp", g.target, 10*time.Second)
			if err != nil {
				return err
			}
			conn.Close()
		}
		took = time.Since(began)
		return nil
	})
	return float64(n) / took.Seconds()
}

// agentCPU is what part of a processor the agent needs at 1,000 connections per second.
func (g logging) agentCPU(b *testing.B) (share, rate float64) {
	b.Helper()
	a := apiOf(g.l.Hosts()[0])
	used := func() float64 {
		v, err := a.metric(b.Context(), 9090, "process_cpu_seconds_total")
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
	before, began := used(), time.Now()
	rate = g.connect(b, 5000, 1000)
	return (used() - before) / time.Since(began).Seconds(), rate
}

// BenchmarkFlowLog compares hosts that log connections with one that does not, measured in
// turn: throughput, connections per second, and the agent's processor time at 1,000 of them per
// second; without rules, when only "all" has connections tracked, and with one.
func BenchmarkFlowLog(b *testing.B) {
	off, policed, all := withLog(b, "off"), withLog(b, "policed"), withLog(b, "all")
	hosts := []logging{off, policed, all}
	for _, rules := range []int{0, 1} {
		name := map[int]string{0: "without rules", 1: "with a rule"}[rules]
		b.Run(name, func(b *testing.B) {
			for _, g := range hosts {
				if rules > 0 {
					addRules(b, g.l, 0, rules)
				}
				g.gigabits(b) // finds the way
			}
			for b.Loop() {
				var bits, rates [3][]float64
				for range 5 {
					for i, g := range hosts {
						bits[i] = append(bits[i], g.gigabits(b))
						rates[i] = append(rates[i], g.connect(b, 1000, 0))
					}
				}
				b.ReportMetric(0, "ns/op")
				for i, which := range []string{"off", "policed", "all"} {
					share, rate := hosts[i].agentCPU(b)
					if i > 0 {
						b.ReportMetric(median(bits[i])/median(bits[0]), which+"-ratio")
						b.ReportMetric(median(rates[i])/median(rates[0]), which+"-connections-ratio")
					}
					b.ReportMetric(100*share, which+"-agent-%")
					b.ReportMetric(rate, which+"-connections/s")
				}
			}
		})
	}
}
