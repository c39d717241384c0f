package bench

import (
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// BenchmarkDockerRun measures docker run to the end of a container that does nothing, on
// a network of Contiv and on one of Docker's own bridge driver, in turns on the same
// Engine. The ratio is of the medians.
func BenchmarkDockerRun(b *testing.B) {
	for _, version := range []string{lab.DockerPacked, lab.DockerBuilt} {
		if !lab.HasDocker(version) {
			continue
		}
		b.Run("Engine"+version, func(b *testing.B) {
			l := labtest.Up(b, lab.Config{Hosts: 1, Docker: version, Relay: true})
			host := l.Hosts()[0]
			if _, err := l.NetctlOutput(b.Context(), "net", "create", "contiv-net", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254"); err != nil {
				b.Fatal(err)
			}
			if _, err := host.Docker(b.Context(), "network", "create", "plain"); err != nil {
				b.Fatal(err)
			}
			run := func(network string) time.Duration {
				began := time.Now()
				if _, err := host.Docker(b.Context(), "run", "--rm", "--network", network, lab.Image, "true"); err != nil {
					b.Fatal(err)
				}
				return time.Since(began)
			}
			run("contiv-net")
			run("plain")
			var ours, theirs []time.Duration
			for b.Loop() {
				for range 10 {
					ours = append(ours, run("contiv-net"))
					theirs = append(theirs, run("plain"))
				}
			}
			with, without := quantile(ours, 0.5), quantile(theirs, 0.5)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(milliseconds(with), "ms/contiv")
			b.ReportMetric(milliseconds(without), "ms/bridge")
			b.ReportMetric(float64(with)/float64(without), "ratio")
		})
	}
}
