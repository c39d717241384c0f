package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// pair are two containers and how to reach the second.
type pair struct {
	l        *lab.Lab
	from, to []string // host or container, and words before a command
	address  string
}

// iperf runs iperf3 from one end to the other and reads what it reports.
func (p pair) iperf(b *testing.B, result any, args ...string) {
	b.Helper()
	run := func(place []string, args ...string) string {
		b.Helper()
		out, err := p.l.Output(b.Context(), place[0], append(slices.Clone(place[1:]), args...)...)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	run(p.to, "iperf3", "--server", "--one-off", "--daemon")
	run(p.to, "sh", "-c", "for i in $(seq 200); do ss -Hltn 'sport = :5201' | grep -q . && exit 0; sleep 0.02; done; exit 1")
	out := run(p.from, slices.Concat([]string{"iperf3", "--json", "--client", p.address}, args)...)
	if err := json.Unmarshal([]byte(out), result); err != nil {
		b.Fatalf("iperf3: %v\n%s", err, out)
	}
}

// gigabits measures one TCP stream of two seconds.
func (p pair) gigabits(b *testing.B) float64 {
	b.Helper()
	var result struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	p.iperf(b, &result, "--time", "2")
	return result.End.SumReceived.BitsPerSecond / 1e9
}

// byHand connects two containers by a bridge with action NORMAL on each of their
// hosts, and a VXLAN port between the hosts if there are two.
func byHand(b *testing.B, hosts int) pair {
	b.Helper()
	l := labtest.Up(b, lab.Config{Hosts: hosts, Bare: true})
	for n := range 2 {
		h, peer := l.Hosts()[n%hosts], l.Hosts()[(n+1)%hosts]
		script := fmt.Sprintf(`
			ip netns add c%[1]d
			ip link add vc%[1]d type veth peer name eth0 netns c%[1]d
			ip link set vc%[1]d up
			ip -n c%[1]d address add 10.9.9.%[1]d/24 dev eth0
			ip -n c%[1]d link set eth0 mtu 1450 up
			ip netns exec c%[1]d ethtool -K eth0 tx off >/dev/null
			ovs-vsctl --may-exist add-br br-bench -- set bridge br-bench datapath_type=netdev -- add-port br-bench vc%[1]d`, n+1)
		if hosts > 1 {
			script += fmt.Sprintf(`
			ovs-vsctl add-port br-bench vx -- set interface vx type=vxlan options:remote_ip=%s options:key=77`, peer.VTEPIP())
		}
		if _, err := h.Output(b.Context(), "sh", "-ec", script); err != nil {
			b.Fatal(err)
		}
	}
	enter := func(n int) []string {
		return []string{l.Hosts()[(n-1)%hosts].Name, "ip", "netns", "exec", fmt.Sprintf("c%d", n)}
	}
	return pair{l: l, from: enter(1), to: enter(2), address: "10.9.9.2"}
}

func byContiv(b *testing.B, hosts int) pair {
	b.Helper()
	l := upWithNetwork(b, hosts)
	var containers []lab.Container
	for n := range 2 {
		c, err := l.Attach(b.Context(), lab.Attachment{Host: l.Hosts()[n%hosts].Name, Name: fmt.Sprintf("c%d", n), Network: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		containers = append(containers, c)
	}
	return pair{l: l, from: []string{"c0"}, to: []string{"c1"}, address: containers[1].IPv4}
}

// BenchmarkTCP: one stream between containers, on one host and across two.
func BenchmarkTCP(b *testing.B) {
	for _, bench := range []struct {
		name  string
		hosts int
	}{{"same host", 1}, {"across hosts", 2}} {
		b.Run(bench.name, func(b *testing.B) {
			ours, theirs := byContiv(b, bench.hosts), byHand(b, bench.hosts)
			ours.gigabits(b) // finds the way
			theirs.gigabits(b)
			var contiv, floor []float64
			for b.Loop() {
				for range 5 {
					contiv, floor = append(contiv, ours.gigabits(b)), append(floor, theirs.gigabits(b))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(contiv), "Gbit/s")
			b.ReportMetric(median(floor), "floor-Gbit/s")
			b.ReportMetric(median(contiv)/median(floor), "ratio")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
