package ovsd

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// tracedTraffic traces packets between two containers of this host, and to a service.
func tracedTraffic(t *testing.T, d *Driver, client, server container) {
	const denied = "default:web:default:p:default:p:7:inRx"
	d.Apply(drivers.Rule{Tenant: "default", Rule: ofnet.Rule{ID: denied, Priority: 9, DstGroup: server.ep.Group, Proto: 6, DstPort: 81, Deny: true}})
	d.Apply(webOf(server))
	t.Cleanup(func() { d.Delete(drivers.KindRule, denied); d.Delete(drivers.KindService, "web:default") })
	ready(t, d)
	stranger := netip.MustParseAddr("10.1.1.99")
	tcp := func(dst netip.Addr, port uint16) traceapi.Packet {
		p := traceapi.Packet{Src: client.ep.IPv4, Dst: dst, Proto: "tcp", SrcPort: 50000, DstPort: port}
		if dst.Is6() {
			p.Src = client.ep.IPv6
		}
		return p
	}
	spoofed := tcp(server.ep.IPv4, 80)
	spoofed.Src = stranger
	const said = "rule default:p:7 of policy p, group web of tenant default denies it"
	for _, c := range []struct {
		name        string
		packet      traceapi.Packet
		kind, words string
		dst         netip.AddrPort // in the end
	}{
		{"allowed", tcp(server.ep.IPv4, 80), traceapi.Delivered, "delivered to endpoint " + server.ep.ID, netip.AddrPortFrom(server.ep.IPv4, 80)},
		{"by IPv6", tcp(server.ep.IPv6, 80), traceapi.Delivered, "delivered to endpoint " + server.ep.ID, netip.AddrPortFrom(server.ep.IPv6, 80)},
		{"denied", tcp(server.ep.IPv4, 81), traceapi.Dropped, said, netip.AddrPortFrom(server.ep.IPv4, 81)},
		{"from another address", spoofed, traceapi.Dropped, "its source address is not the endpoint's own", netip.AddrPortFrom(server.ep.IPv4, 80)},
		{"to a service", tcp(vip4, 80), traceapi.Delivered, "delivered to endpoint " + server.ep.ID, netip.AddrPortFrom(server.ep.IPv4, 8080)},
		{"to a service by IPv6", tcp(vip6, 80), traceapi.Delivered, "delivered to endpoint " + server.ep.ID, netip.AddrPortFrom(server.ep.IPv6, 8080)},
	} {
		t.Run(c.name, func(t *testing.T) {
			hop, err := d.Trace(t.Context(), traceapi.HopRequest{Endpoint: client.ep.ID, Packet: c.packet})
			if err != nil {
				t.Fatal(err)
			}
			end := hop.Ends[0]
			if len(hop.Ends) != 1 || end.Kind != c.kind || !strings.HasPrefix(end.Words, c.words) {
				t.Errorf("ends with %+v, after %+v", hop.Ends, hop.Steps)
			}
			if got := netip.AddrPortFrom(end.Packet.Dst, end.Packet.DstPort); got != c.dst {
				t.Errorf("is for %v in the end, want %v", got, c.dst)
			}
		})
	}
	for _, c := range []struct {
		name string
		req  traceapi.HopRequest
		kind errs.Kind
	}{
		{"from nowhere", traceapi.HopRequest{Packet: tcp(vip4, 80)}, errs.Invalid},
		{"from an unknown endpoint", traceapi.HopRequest{Endpoint: "x", Packet: tcp(vip4, 80)}, errs.NotFound},
		{"from an uplink that is not there", traceapi.HopRequest{VLAN: 5, Packet: tcp(vip4, 80)}, errs.NotFound},
		{"of two families", traceapi.HopRequest{Endpoint: client.ep.ID, Packet: traceapi.Packet{Src: client.ep.IPv4, Dst: vip6, Proto: "tcp"}}, errs.Invalid},
		{"of another protocol", traceapi.HopRequest{Endpoint: client.ep.ID, Packet: traceapi.Packet{Src: client.ep.IPv4, Dst: vip4, Proto: "gre,ip"}}, errs.Invalid},
		{"of no MAC address", traceapi.HopRequest{Endpoint: client.ep.ID, Packet: traceapi.Packet{Src: client.ep.IPv4, Dst: vip4, Proto: "tcp", EthDst: "x,actions=drop"}}, errs.Invalid},
		{"through the tunnel of another family", traceapi.HopRequest{VNI: 1, VTEP: vip6, Packet: tcp(server.ep.IPv4, 80)}, errs.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if hop, err := d.Trace(t.Context(), c.req); !errs.Is(err, c.kind) {
				t.Errorf("got %+v, %v; want %v", hop, err, c.kind)
			}
		})
	}
}
