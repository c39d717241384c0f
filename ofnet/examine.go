package ofnet

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// Difference is how the flows of a bridge differ from those wanted.
type Difference struct {
	Foreign int // flows in the bridge that nobody wants, such as those added by hand
	Missing int // flows wanted that the bridge does not have, such as those deleted by hand
}

// Difference reads the bridge's flows. Changes that have not been sent count as well, so the
// caller looks at Status first. It fails with Unavailable while there is no connection.
func (s *Switch) Difference(ctx context.Context) (d Difference, err error) {
	s.mu.Lock()
	wanted := len(s.flows.holders)
	s.mu.Unlock()
	found := 0
	err = s.Counters(ctx, 0, 0, func(f of.FlowStats) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch _, ours := s.flows.holders[f.Key()]; {
		case ours:
			found++
		case f.Cookie&cookieLearned == 0 && !s.learned[f.Table]:
			d.Foreign++
		}
	})
	if err != nil {
		return Difference{}, fmt.Errorf("read the flows of %s: %w", s.cfg.Name, err)
	}
	d.Missing = max(wanted-found, 0)
	return d, nil
}

// TunnelCounts returns what has come through tunnels, by the tunnel address of the host that
// sent it. It fails with Unavailable while there is no connection.
func (s *Switch) TunnelCounts(ctx context.Context) (map[netip.Addr]of.Counter, error) {
	counts := map[netip.Addr]of.Counter{}
	err := s.Counters(ctx, featureTunnel<<cookieFeatureShift, 0xff<<cookieFeatureShift, func(f of.FlowStats) {
		for _, field := range []of.Field{of.FieldTunSrc, of.FieldTunIPv6Src} {
			if v, ok := f.Match.Get(field); ok {
				counts[v.Addr()] = of.Counter{Packets: f.Packets, Bytes: f.Bytes}
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("count what came through tunnels to %s: %w", s.cfg.Name, err)
	}
	return counts, nil
}

// Frames of probes: of an EtherType for experiments (IEEE 802, section 9.2.3), from and to
// addresses that are nobody's, in a tunnel with VNI 0, which no network has.
const (
	probeVNI       = 0
	probeEtherType = "\x88\xb5"
	probeTo        = "\x02\x02\x00\x00\x00\x01"
	probeFrom      = "\x02\x02\x00\x00\x00\x02"
)

// TunnelProbe is a frame, with size bytes behind its Ethernet header, that is sent to a host
// through the tunnel port. The host counts it by its sender (TunnelCounts), and drops it: it
// is of no network.
func TunnelProbe(tunnelPort uint32, vtep netip.Addr, size int) *of.PacketOut {
	frame := bytes.Repeat([]byte{0}, 14+max(size, 0))
	copy(frame, probeTo+probeFrom+probeEtherType+"contiv tunnel probe")
	return &of.PacketOut{
		InPort: of.PortController, Data: frame,
		Actions: toVTEP(of.NewActions().SetTunID(probeVNI), vtep).Output(tunnelPort),
	}
}
