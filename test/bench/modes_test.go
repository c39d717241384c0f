package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// manyRules is how many rules a mode is measured with.
const manyRules = 10_000

// packets measures how many small datagrams arrive, in thousands a second.
func (p pair) packets(b *testing.B) float64 {
	b.Helper()
	var result struct {
		End struct {
			Sum struct {
				Seconds     float64 `json:"seconds"`
				Packets     float64 `json:"packets"`
				LostPackets float64 `json:"lost_packets"`
			} `json:"sum"`
		} `json:"end"`
	}
	p.iperf(b, &result, "--udp", "--bitrate", "0", "--length", "64", "--time", "2")
	sum := result.End.Sum
	return (sum.Packets - sum.LostPackets) / sum.Seconds / 1000
}

// inMode makes two containers on one host, in a group that a policy without rules holds.
func inMode(b *testing.B, netMode, encap, forward string) pair {
	b.Helper()
	l := labtest.Up(b, lab.Config{Hosts: 1, NetMode: netMode, FwdMode: forward})
	for _, args := range []string{
		"net create bench --encap " + encap + " --pkt-tag 101 --subnet=20.1.0.0/16 --gateway=20.1.255.254",
		"policy create guard", "group create bench web --policy guard --wait",
	} {
		if _, err := l.NetctlOutput(b.Context(), strings.Fields(args)...); err != nil {
			b.Fatal(err)
		}
	}
	var containers []lab.Container
	for n := range 2 {
		c, err := l.Attach(b.Context(), lab.Attachment{Host: "host1", Name: fmt.Sprintf("c%d", n), Network: "bench", Group: "web"})
		if err != nil {
			b.Fatal(err)
		}
		containers = append(containers, c)
	}
	return pair{l: l, from: []string{"c0"}, to: []string{"c1"}, address: containers[1].IPv4}
}

// addRules gives the policy rules about ports and addresses that the measurement does
// not use, and waits until the host has them.
func addRules(b *testing.B, l *lab.Lab, from, to int) {
	b.Helper()
	var file strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&file, "kind: rule\ntenantName: default\npolicyName: guard\nruleId: %q\ndirection: in\nprotocol: tcp\nport: %d\npriority: %d\naction: deny\nfromIpAddress: 10.%d.%d.0/24\n---\n",
			fmt.Sprint(i), 10000+i%5000, 1+i%100, i/256%256, i%256)
	}
	var out strings.Builder
	if err := l.Netctl(b.Context(), lab.Stdio{In: strings.NewReader(file.String()), Out: &out, Err: &out}, "apply", "--filename", "-", "--wait=2m"); err != nil {
		text := out.String()
		b.Fatalf("apply %d rules: %v\n%s", to-from, err, text[max(0, len(text)-500):])
	}
}

// BenchmarkModes: throughput and packet rate between two containers of a host in each
// mode, as ratios to a bridge with action NORMAL on the same datapath that is measured
// in turn: without rules, with one, which is when connections begin to be tracked, and
// with 10,000.
func BenchmarkModes(b *testing.B) {
	for _, mode := range []struct{ name, netMode, encap, forward string }{
		{"vxlan routing", "vxlan", "vxlan", "routing"},
		{"vxlan bridge", "vlan", "vxlan", "bridge"},
		{"vlan routing", "vlan", "vlan", "routing"},
		{"vlan bridge", "vlan", "vlan", "bridge"},
	} {
		b.Run(mode.name, func(b *testing.B) {
			ours, theirs := inMode(b, mode.netMode, mode.encap, mode.forward), byHand(b, 1)
			ours.gigabits(b) // finds the way
			theirs.gigabits(b)
			for b.Loop() {
				free := side(b, ours, theirs)
				addRules(b, ours.l, 0, 1)
				tracked := side(b, ours, theirs)
				addRules(b, ours.l, 1, manyRules)
				many := side(b, ours, theirs)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(free.bits, "ratio")
				b.ReportMetric(free.packets, "ratio-packets")
				b.ReportMetric(tracked.bits, "tracked-ratio")
				b.ReportMetric(tracked.packets, "tracked-ratio-packets")
				b.ReportMetric(many.bits/tracked.bits, "rules-ratio")
				b.ReportMetric(many.packets/tracked.packets, "rules-ratio-packets")
			}
		})
	}
}

// compared is a pair's throughput and packet rate, as parts of another's.
type compared struct{ bits, packets float64 }

// side measures two pairs in turn.
func side(b *testing.B, ours, theirs pair) compared {
	b.Helper()
	var bits, packets []float64
	for range 3 {
		bits = append(bits, ours.gigabits(b)/theirs.gigabits(b))
		packets = append(packets, ours.packets(b)/theirs.packets(b))
	}
	return compared{median(bits), median(packets)}
}
