package nodeproxy

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// BenchmarkConnect opens connections from a node, straight to a provider and to the
// address of its Service, one of 1,000. It reports the median of each, in microseconds.
func BenchmarkConnect(b *testing.B) {
	inNode(b, func() {
		for _, args := range [][]string{
			{"ip", "link", "set", "lo", "up"}, {"ip", "address", "add", "198.51.100.1/32", "dev", "lo"}, {"ip", "route", "add", "10.96.0.0/16", "dev", "lo", "src", "198.51.100.1"},
		} {
			run(b, args...)
		}
		l, err := net.Listen("tcp", "198.51.100.1:8080")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		services := many(1000)
		mine := services[999]
		for i := range mine.Frontends {
			mine.Frontends[i].Inside.Providers = at("198.51.100.1:8080")
		}
		open4test(b).become(b, services...)
		took := map[netip.AddrPort][]time.Duration{}
		targets := []netip.AddrPort{at("198.51.100.1:8080")[0], mine.Frontends[0].Addr}
		for b.Loop() {
			for _, to := range targets {
				start := time.Now()
				c, err := net.Dial("tcp", to.String())
				if err != nil {
					b.Fatal(err)
				}
				took[to] = append(took[to], time.Since(start))
				_ = c.Close()
			}
		}
		for i, unit := range []string{"µs-direct", "µs-service"} {
			all := took[targets[i]]
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, unit)
		}
	})
}
