package trace

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// world is a cluster of two hosts whose agents say what the test wants.
type world struct {
	endpoints []*state.Endpoint
	answers   map[string][]traceapi.End // by host and where the packet comes from
	asked     []traceapi.HopRequest
}

func newWorld() *world {
	ep := func(id, name, host, ip4, ip6, tenant string) *state.Endpoint {
		return &state.Endpoint{ID: id, EPCommonName: name, HomingHost: host, IPAddress: ip4, IPv6Address: ip6, NetID: "net." + tenant}
	}
	return &world{endpoints: []*state.Endpoint{
		ep("net.blue-1", "a", "h1", "10.1.1.1", "2001:db8::1", "blue"), ep("net.blue-2", "b", "h2", "10.1.1.2", "", "blue"),
		ep("net.red-1", "r", "h2", "10.1.1.2", "", "red"), ep("net.blue-3", "lost", "", "10.1.1.3", "", "blue"),
	}, answers: map[string][]traceapi.End{}}
}

func (w *world) EndpointsAt(a netip.Addr, tenant string) (found []*state.Endpoint) {
	for _, ep := range w.endpoints {
		if (ep.IPAddress == a.String() || ep.IPv6Address == a.String()) && (tenant == "" || strings.HasSuffix(ep.NetID, "."+tenant)) {
			found = append(found, ep)
		}
	}
	return found
}

func (w *world) EndpointNamed(search string) *state.Endpoint {
	for _, ep := range w.endpoints {
		if ep.ID == search || ep.EPCommonName == search {
			return ep
		}
	}
	return nil
}

func (w *world) NetworkOf(ep *state.Endpoint) (network, tenant string) {
	return state.SplitNetworkID(ep.NetID)
}

func (w *world) ServiceAt(name, tenant string) []netip.Addr {
	if name == "web" && tenant == "blue" {
		return []netip.Addr{netip.MustParseAddr("10.1.1.200")}
	}
	return nil
}

func (w *world) HostRecords(context.Context) (map[string]state.Host, error) {
	return map[string]state.Host{"h1": {VtepIP: "192.168.60.1"}, "h2": {VtepIP: "192.168.60.2"}}, nil
}

func (w *world) Trace(_ context.Context, host string, req traceapi.HopRequest) (*traceapi.Hop, error) {
	w.asked = append(w.asked, req)
	key := host + " " + req.Endpoint
	if req.VNI != 0 {
		key = host + " tunnel"
	}
	if req.VLAN != 0 {
		key = host + " uplink"
	}
	ends := w.answers[key]
	if ends == nil {
		return nil, errors.New("ask host " + host + ": the agent does not answer")
	}
	for i := range ends {
		if !ends[i].Packet.Src.IsValid() {
			ends[i].Packet = req.Packet
		}
	}
	return &traceapi.Hop{Host: host, From: "endpoint " + req.Endpoint, Ends: ends}, nil
}

var (
	vtep1, vtep2 = netip.MustParseAddr("192.168.60.1"), netip.MustParseAddr("192.168.60.2")

	toH1 = traceapi.End{Kind: traceapi.Tunnelled, VTEP: vtep1, VNI: 7, Words: "sent through the tunnel to 192.168.60.1, VNI 7"}
	toH2 = traceapi.End{Kind: traceapi.Tunnelled, VTEP: vtep2, VNI: 7, Words: "sent through the tunnel to 192.168.60.2, VNI 7"}
	atA  = traceapi.End{Kind: traceapi.Delivered, Endpoint: "net.blue-1", Words: "delivered to endpoint net.blue-1"}
	atB  = traceapi.End{Kind: traceapi.Delivered, Endpoint: "net.blue-2", Words: "delivered to endpoint net.blue-2"}
	lost = traceapi.End{Kind: traceapi.Dropped, Words: "nobody is there"}
	out5 = traceapi.End{Kind: traceapi.Uplinked, VLAN: 5, Words: "sent out of uplink eth2, VLAN 5"}
)

func ends(e ...traceapi.End) []traceapi.End { return e }

// TestFollow: a packet is followed from host to host, and so is its answer.
func TestFollow(t *testing.T) {
	far := netip.MustParseAddr("192.168.60.9")
	for _, c := range []struct {
		name    string
		to      string
		answers map[string][]traceapi.End
		arrives bool
		hosts   string
		verdict string
	}{
		{
			"by tunnel", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(toH2), "h2 tunnel": ends(atB), "h2 net.blue-2": ends(toH1), "h1 tunnel": ends(atA)},
			true, "h1 h2 / h2 h1", "the packet is delivered to endpoint b, and the answer comes back",
		},
		{
			"by VLAN", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(out5), "h2 uplink": ends(atB), "h2 net.blue-2": ends(out5), "h1 uplink": ends(atA)},
			true, "h1 h2 / h2 h1", "the packet is delivered to endpoint b, and the answer comes back",
		},
		{
			"flooded", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(lost, toH1, toH2), "h2 tunnel": ends(lost, atB), "h2 net.blue-2": ends(lost)},
			false, "h1 h2 / h2", "the packet arrives, but the answer is dropped on host h2: nobody is there",
		},
		{"dropped", "b", map[string][]traceapi.End{"h1 net.blue-1": ends(lost)}, false, "h1 / ", "the packet is dropped on host h1: nobody is there"},
		{
			"answered by the switch", "10.1.1.254",
			map[string][]traceapi.End{"h1 net.blue-1": ends(traceapi.End{Kind: traceapi.Answered, Words: "sent back to endpoint net.blue-1 by the switch"})},
			true, "h1 / ", "the packet is sent back to endpoint a by the switch on host h1",
		},
		{"into the world", "8.8.8.8", map[string][]traceapi.End{"h1 net.blue-1": ends(out5)}, false, "h1 / ", "the packet is sent out of uplink eth2, VLAN 5 on host h1; what the physical network does with it is not known here"},
		{
			"to a tunnel of nobody", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(traceapi.End{Kind: traceapi.Tunnelled, VTEP: far, VNI: 7, Words: "sent through the tunnel to 192.168.60.9"})},
			false, "h1 / ", "the packet is sent through the tunnel to 192.168.60.9 on host h1, and no host has that address",
		},
		{"the other agent is away", "b", map[string][]traceapi.End{"h1 net.blue-1": ends(toH2)}, false, "h1 / ", "the packet leaves host h1 and cannot be followed: ask host h2: the agent does not answer"},
		{
			"the answer's agent is away", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(atB)},
			false, "h1 / ",
			"the packet arrives, but the answer cannot be followed: ask host h1: the agent does not answer",
		},
		{
			"for ever", "b",
			map[string][]traceapi.End{"h1 net.blue-1": ends(toH2), "h2 tunnel": ends(toH1), "h1 tunnel": ends(toH2)},
			false, "h1 h2 h1 h2 / ", "the packet leaves host h2 and cannot be followed: after 4 hosts it has not arrived",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.answers = c.answers
			tr, err := Run(t.Context(), w, w, traceapi.Query{From: "a", To: c.to, Port: 80})
			if err != nil {
				t.Fatal(err)
			}
			var hosts []string
			for _, hops := range [][]traceapi.Hop{tr.Request, {{Host: "/"}}, tr.Reply} {
				for _, h := range hops {
					hosts = append(hosts, h.Host)
				}
			}
			if got := strings.Join(hosts, " "); tr.Arrives != c.arrives || strings.TrimSpace(got) != strings.TrimSpace(c.hosts) || tr.Verdict != c.verdict {
				t.Errorf("arrives %t by %s\n%s", tr.Arrives, got, tr.Verdict)
			}
			if strings.Contains(tr.Request[0].From, "net.blue-1") {
				t.Errorf("endpoints without their names: %s", tr.Request[0].From)
			}
		})
	}
}

// Each host is told where the packet comes from, and what has become of it.
func TestRequests(t *testing.T) {
	w := newWorld()
	changed := toH2
	changed.Packet = traceapi.Packet{EthDst: "00:00:11:11:11:11", Src: netip.MustParseAddr("10.1.1.1"), Dst: netip.MustParseAddr("10.1.1.2"), Proto: "tcp", SrcPort: clientPort, DstPort: 8080, TTL: 63}
	w.answers = map[string][]traceapi.End{"h1 net.blue-1": ends(changed), "h2 tunnel": ends(atB)}
	if _, err := Run(t.Context(), w, w, traceapi.Query{From: "a", To: "web", Port: 80}); err != nil {
		t.Fatal(err)
	}
	first := traceapi.Packet{Src: netip.MustParseAddr("10.1.1.1"), Dst: netip.MustParseAddr("10.1.1.200"), Proto: "tcp", SrcPort: clientPort, DstPort: 80}
	answer := traceapi.Packet{Src: netip.MustParseAddr("10.1.1.2"), Dst: netip.MustParseAddr("10.1.1.1"), Proto: "tcp", SrcPort: 8080, DstPort: clientPort, Answer: true}
	want := []traceapi.HopRequest{
		{Endpoint: "net.blue-1", Packet: first}, {VNI: 7, VTEP: vtep1, Packet: changed.Packet}, {Endpoint: "net.blue-2", Packet: answer},
	}
	if diff := cmp.Diff(want, w.asked, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Impossible queries are refused, and the error says what to do.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		q    traceapi.Query
		kind errs.Kind
		text string
	}{
		{traceapi.Query{To: "b"}, errs.Invalid, "from: expected an endpoint or an address"},
		{traceapi.Query{From: "a", To: "nobody"}, errs.NotFound, `to: no endpoint "nobody"`},
		{traceapi.Query{From: "10.9.9.9", To: "a"}, errs.NotFound, "no endpoint has the address 10.9.9.9"},
		{traceapi.Query{From: "10.1.1.2", To: "a"}, errs.Invalid, "net.blue-2, net.red-1; give a tenant"},
		{traceapi.Query{From: "a", To: "b", Family: 6}, errs.Invalid, "none of one family"},
		{traceapi.Query{From: "a", To: "b", Family: 5}, errs.Invalid, "expected 4 or 6"},
		{traceapi.Query{From: "a", To: "b", Proto: "gre"}, errs.Invalid, `protocol "gre"`},
		{traceapi.Query{From: "a", To: "b", Proto: "udp"}, errs.Invalid, "udp needs a port"},
		{traceapi.Query{From: "a", To: "b", Proto: "icmp", Port: 3}, errs.Invalid, "icmp has no ports"},
		{traceapi.Query{From: "lost", To: "b"}, errs.NotFound, "is on no host"},
	} {
		w := newWorld()
		if tr, err := Run(t.Context(), w, w, c.q); !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %+v, %v", c.q, tr, err)
		}
	}
}
