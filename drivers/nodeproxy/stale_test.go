package nodeproxy

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestStale(t *testing.T) {
	services := []Service{{ID: "a/b", Frontends: []Frontend{
		with(frontend("dns", "10.96.0.10:53", "20.1.0.2:5353"), func(s *Frontend) { s.Proto = unix.IPPROTO_UDP }),
		with(frontend("dns", "0.0.0.0:30053", "20.1.0.2:5353"), func(s *Frontend) { s.Proto = unix.IPPROTO_UDP }),
		with(frontend("web", "[fd00:96::10]:80", "[fd00:20::3]:8080"), func(s *Frontend) { s.Inside.Providers, s.Outside.Providers = nil, nil }),
	}}}
	filter := newStale(services, []netip.Addr{netip.MustParseAddr("192.168.2.10")})
	flow := func(proto uint8, asked, answers string) netlink.ConntrackFlow {
		a, b := netip.MustParseAddrPort(asked), netip.MustParseAddrPort(answers)
		return netlink.ConntrackFlow{
			Forward: netlink.IPTuple{Protocol: proto, DstIP: a.Addr().AsSlice(), DstPort: a.Port()},
			Reverse: netlink.IPTuple{Protocol: proto, SrcIP: b.Addr().AsSlice(), SrcPort: b.Port()},
		}
	}
	tcp := func(state uint8, answers string) netlink.ConntrackFlow {
		f := flow(unix.IPPROTO_TCP, "[fd00:96::10]:80", answers)
		f.ProtoInfo = &netlink.ProtoInfoTCP{State: state}
		return f
	}
	zoned := flow(unix.IPPROTO_UDP, "10.96.0.10:53", "20.1.0.9:5353")
	zoned.Zone = 7
	const established = 3
	for _, c := range []struct {
		name string
		flow netlink.ConntrackFlow
		want bool
	}{
		{"to a provider", flow(unix.IPPROTO_UDP, "10.96.0.10:53", "20.1.0.2:5353"), false},
		{"to what was one", flow(unix.IPPROTO_UDP, "10.96.0.10:53", "20.1.0.9:5353"), true},
		{"from before the Service", flow(unix.IPPROTO_UDP, "10.96.0.10:53", "10.96.0.10:53"), true},
		{"to another port", flow(unix.IPPROTO_UDP, "10.96.0.10:54", "10.96.0.10:54"), false},
		{"in a zone of the switch", zoned, false},
		{"by a node port", flow(unix.IPPROTO_UDP, "192.168.2.10:30053", "20.1.0.2:5353"), false},
		{"by a node port to what was a provider", flow(unix.IPPROTO_UDP, "192.168.2.10:30053", "20.1.0.9:5353"), true},
		{"to the same port of another node", flow(unix.IPPROTO_UDP, "192.168.2.11:30053", "192.168.2.11:30053"), false},
		{"half open, to a provider that keeps what it has", tcp(tcpSynSent, "[fd00:20::3]:8080"), false},
		{"half open, to what was a provider", tcp(tcpSynSent, "[fd00:20::4]:8080"), true},
		{"established, to what was a provider", tcp(established, "[fd00:20::4]:8080"), false},
	} {
		if got := filter.MatchConntrackFlow(&c.flow); got != c.want {
			t.Errorf("a connection %s: forgotten %v, expected %v", c.name, got, c.want)
		}
	}
}

// The kernel can be asked.
func TestForgetStale(t *testing.T) {
	inNode(t, func() {
		if err := forgetStale([]Service{examples["cluster"]}); err != nil {
			t.Error(err)
		}
	})
}
