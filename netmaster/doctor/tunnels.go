package doctor

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/retry"
)

// Probes are frames of the largest size that hosts let containers send, so that they find
// links on the way with a smaller MTU; what does not arrive is tried again with small ones. A
// switch counts packets with up to a second's delay.
const (
	probeFrames = 3
	probeDelay  = 1500 * time.Millisecond
)

// Arrival is what becomes of frames through a tunnel.
type Arrival int

// The arrivals.
const (
	Arrives   Arrival = iota
	SmallOnly         // frames of the full size do not arrive
	Lost
)

// way is a tunnel in one direction, between hosts by label.
type way struct{ from, to string }

// prober sends frames through all tunnels between hosts that have been asked.
type prober struct {
	agents Agents
	vtep   map[string]netip.Addr // by host
	mtu    int                   // the least of all hosts
	before map[string]agents.Facts
}

// newProber returns nil if there is no tunnel to try.
func newProber(a Agents, facts map[string]agents.Facts) *prober {
	p := &prober{agents: a, vtep: map[string]netip.Addr{}, before: facts}
	for label, h := range facts {
		t := h.Switch.Tunnels
		if t.Networks == 0 || !t.VTEP.IsValid() {
			continue
		}
		p.vtep[label] = t.VTEP
		if p.mtu == 0 || t.MTU < p.mtu {
			p.mtu = t.MTU
		}
	}
	if len(p.vtep) < 2 || p.mtu < doctorapi.MinSize {
		return nil
	}
	return p
}

// ways are the tunnels to try: of every host to the ones that follow it in the order of
// labels, at most MaxPeers.
func (p *prober) ways() (out []way) {
	labels := slices.Sorted(maps.Keys(p.vtep))
	for i, from := range labels {
		ring := slices.Concat(labels[i+1:], labels[:i])
		for _, to := range ring[:min(len(ring), doctorapi.MaxPeers)] {
			if _, known := received(p.before[from], p.vtep[to]); known {
				out = append(out, way{from, to})
			}
		}
	}
	return out
}

// received returns what has come to a host from a tunnel address; false: the host does not
// know it.
func received(h agents.Facts, from netip.Addr) (doctorapi.Peer, bool) {
	i := slices.IndexFunc(h.Switch.Tunnels.Peers, func(p doctorapi.Peer) bool { return p.VTEP == from })
	if i < 0 {
		return doctorapi.Peer{}, false
	}
	return h.Switch.Tunnels.Peers[i], true
}

// run tries all tunnels. It returns what became of the frames, and the facts read last. A way
// whose ends do not both answer is left out.
func (p *prober) run(ctx context.Context) (map[way]Arrival, map[string]agents.Facts) {
	result := map[way]Arrival{}
	ways := p.ways()
	ways, after := p.send(ctx, ways, p.mtu)
	var lost []way
	for _, w := range ways {
		if p.arrived(w, after) > 0 {
			result[w] = Arrives
		} else {
			lost = append(lost, w)
		}
	}
	if len(lost) == 0 {
		return result, after
	}
	lost, last := p.send(ctx, lost, doctorapi.MinSize)
	for _, w := range lost {
		switch bytes := p.arrived(w, last); {
		case bytes >= uint64(p.mtu): // those of full size were late
			result[w] = Arrives
		case bytes > 0:
			result[w] = SmallOnly
		default:
			result[w] = Lost
		}
	}
	maps.Copy(after, last)
	return result, after
}

// arrived returns how many bytes have come along a way since before.
func (p *prober) arrived(w way, now map[string]agents.Facts) uint64 {
	before, _ := received(p.before[w.to], p.vtep[w.from])
	after, _ := received(now[w.to], p.vtep[w.from])
	if after.Bytes < before.Bytes { // it has been programmed again
		return after.Bytes
	}
	return after.Bytes - before.Bytes
}

// send sends frames along ways and reads the counters. It returns the ways along which they
// were sent and counted.
func (p *prober) send(ctx context.Context, ways []way, size int) ([]way, map[string]agents.Facts) {
	probes, ends := map[string]doctorapi.Probe{}, map[string]bool{}
	for _, w := range ways {
		probe := probes[w.from]
		probe.Size, probe.Count, probe.Peers = size, probeFrames, append(probe.Peers, p.vtep[w.to])
		probes[w.from] = probe
		ends[w.from], ends[w.to] = true, true
	}
	asked, cancel := context.WithTimeout(ctx, askWithin)
	failed := p.agents.Probe(asked, probes)
	cancel()
	retry.Pause(ctx, probeDelay)
	after, _ := ask(ctx, p.agents, slices.Sorted(maps.Keys(ends)))
	ways = slices.DeleteFunc(ways, func(w way) bool {
		_, heard := after[w.to]
		return failed[w.from] != nil || !heard
	})
	return ways, after
}

// tunnels finds tunnels through which frames do not arrive.
var tunnels = check{"tunnels", func(f *Facts) (out []doctorapi.Finding) {
	for w, arrival := range f.Tunnels {
		back, tried := f.Tunnels[way{w.to, w.from}]
		switch {
		case arrival == SmallOnly:
			out = append(out, doctorapi.Finding{
				Code: "tunnel-mtu", Severity: doctorapi.Error, Object: w.String(), Do: "raise the MTU of the network between them, or lower that of the interfaces with the tunnel addresses",
				Text: "small packets arrive through the tunnel, but none of the size that containers may send: a link on the way has a smaller MTU",
			})
		case arrival == Lost && tried && back == Lost && w.from < w.to:
			out = append(out, doctorapi.Finding{
				Code: "tunnel-down", Severity: doctorapi.Error, Object: w.String(), Do: "ping the tunnel addresses; see whether a firewall blocks 4789/udp; ovs-appctl ovs/route/show",
				Text: "nothing arrives through the tunnel, in either direction",
			})
		case arrival == Lost && !(tried && back == Lost):
			out = append(out, doctorapi.Finding{
				Code: "tunnel-one-way", Severity: doctorapi.Error, Object: w.String(), Text: "nothing arrives through the tunnel in this direction, although it does in the other",
				Do: fmt.Sprintf("see whether a firewall of host %s blocks 4789/udp, or something on the way drops it", w.to),
			})
		}
	}
	return out
}}

func (w way) String() string { return "tunnel from host " + w.from + " to host " + w.to }
