// Package trace follows a packet from host to host: it finds the endpoints, and asks
// the agent of each host on the way. Nothing is sent.
//
// The result holds for the first packet of a connection, and for the answer to it.
package trace

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Cluster is what a trace needs to know of the cluster.
type Cluster interface {
	// EndpointsAt finds endpoints by an address, in one tenant or, for "", in all.
	EndpointsAt(a netip.Addr, tenant string) []*state.Endpoint
	// EndpointNamed finds an endpoint by (part of) what identifies it; nil: there is none.
	EndpointNamed(search string) *state.Endpoint
	// NetworkOf returns the names of an endpoint's network and tenant.
	NetworkOf(ep *state.Endpoint) (network, tenant string)
	// ServiceAt returns the addresses of a service; none: there is no such service.
	ServiceAt(name, tenant string) []netip.Addr
	// HostRecords returns the hosts by label.
	HostRecords(ctx context.Context) (map[string]state.Host, error)
}

// Agents are asked for the way through their hosts.
type Agents interface {
	Trace(ctx context.Context, host string, req traceapi.HopRequest) (*traceapi.Hop, error)
}

// mostHops bounds the way of a packet.
const mostHops = 4

// clientPort is the port that clients send from: the first dynamic one (RFC 6335
// section 6).
const clientPort = 49152

// tracer is one trace.
type tracer struct {
	cluster Cluster
	agents  Agents
	hosts   map[string]state.Host
	tenant  string
}

// Resolve finds out who is meant by a query and which packet is asked about, but asks no agent.
// Errors are those of Run.
func Resolve(c Cluster, q traceapi.Query) (*traceapi.Trace, error) {
	t := &tracer{cluster: c, tenant: q.Tenant}
	return t.begin(q)
}

// Run answers a query. An unknown end is NotFound, an impossible query Invalid. When the
// agent of a later host cannot be asked, the trace ends there and says so.
func Run(ctx context.Context, c Cluster, agents Agents, q traceapi.Query) (*traceapi.Trace, error) {
	t := &tracer{cluster: c, agents: agents, tenant: q.Tenant}
	out, err := t.begin(q)
	if err != nil {
		return nil, err
	}
	if t.hosts, err = c.HostRecords(ctx); err != nil {
		return nil, err
	}
	first := traceapi.HopRequest{Endpoint: out.From.Endpoint, Packet: out.Packet}
	hops, there, err := t.follow(ctx, out.From.Host, first, out.To)
	if len(hops) == 0 {
		return nil, err
	}
	out.Request, out.Reply = hops, []traceapi.Hop{}
	if err != nil || there.Kind != traceapi.Delivered {
		out.Arrives, out.Verdict = err == nil && there.Kind == traceapi.Answered, verdict("the packet", hops, there, err)
		return t.named(out), nil
	}
	p := there.Packet
	back := traceapi.HopRequest{Endpoint: there.Endpoint, Packet: traceapi.Packet{
		Src: p.Dst, Dst: p.Src, Proto: p.Proto, SrcPort: p.DstPort, DstPort: p.SrcPort, Answer: true,
	}}
	hops, home, err := t.follow(ctx, hops[len(hops)-1].Host, back, out.From)
	out.Reply = hops
	out.Arrives = err == nil && home.Kind == traceapi.Delivered && home.Endpoint == out.From.Endpoint
	switch {
	case out.Arrives:
		out.Verdict = "the packet is " + there.Words + ", and the answer comes back"
	default:
		out.Verdict = "the packet arrives, but " + verdict("the answer", hops, home, err)
	}
	return t.named(out), nil
}

// verdict puts the end of a packet that does not come to its destination into words.
func verdict(what string, hops []traceapi.Hop, end traceapi.End, err error) string {
	host := ""
	if len(hops) > 0 {
		host = hops[len(hops)-1].Host
	}
	switch {
	case err != nil && host == "":
		return fmt.Sprintf("%s cannot be followed: %v", what, err)
	case err != nil:
		return fmt.Sprintf("%s leaves host %s and cannot be followed: %v", what, host, err)
	case end.Kind == traceapi.Dropped:
		return fmt.Sprintf("%s is dropped on host %s: %s", what, host, end.Words)
	case end.Kind == traceapi.Tunnelled:
		return fmt.Sprintf("%s is %s on host %s, and no host has that address", what, end.Words, host)
	case end.Kind == traceapi.Uplinked:
		return fmt.Sprintf("%s is %s on host %s; what the physical network does with it is not known here", what, end.Words, host)
	}
	return fmt.Sprintf("%s is %s on host %s", what, end.Words, host)
}

// begin resolves both ends and the packet.
func (t *tracer) begin(q traceapi.Query) (*traceapi.Trace, error) {
	proto := cmp.Or(strings.ToLower(q.Proto), map[bool]string{true: "tcp", false: "icmp"}[q.Port != 0])
	switch {
	case proto != "icmp" && proto != "tcp" && proto != "udp" && proto != "sctp":
		return nil, errs.New(errs.Invalid, "protocol %.40q: expected icmp, tcp, udp or sctp", q.Proto)
	case proto == "icmp" && q.Port != 0:
		return nil, errs.New(errs.Invalid, "icmp has no ports; leave the port away")
	case proto != "icmp" && q.Port == 0:
		return nil, errs.New(errs.Invalid, "%s needs a port, 1 to 65535", proto)
	case q.Family != 0 && q.Family != 4 && q.Family != 6:
		return nil, errs.New(errs.Invalid, "address family %d: expected 4 or 6", q.Family)
	}
	from, fromAddrs, err := t.find("from", q.From)
	if err != nil {
		return nil, err
	}
	if from.Endpoint == "" {
		return nil, errs.New(errs.NotFound, "from: no endpoint has the address %s; a trace begins at an endpoint", q.From)
	}
	to, toAddrs, err := t.find("to", q.To)
	if err != nil {
		return nil, err
	}
	for _, four := range []bool{true, false} {
		if q.Family != 0 && four != (q.Family == 4) {
			continue
		}
		src, dst := ofFamily(fromAddrs, four), ofFamily(toAddrs, four)
		if !src.IsValid() || !dst.IsValid() {
			continue
		}
		from.Address, to.Address = src, dst
		p := traceapi.Packet{Src: src, Dst: dst, Proto: proto}
		if proto != "icmp" {
			p.SrcPort, p.DstPort = clientPort, q.Port
		}
		return &traceapi.Trace{From: from, To: to, Packet: p}, nil
	}
	return nil, errs.New(errs.Invalid, "%s has the addresses %v and %s has %v: none of one family", from.Name, fromAddrs, to.Name, toAddrs)
}

func ofFamily(addrs []netip.Addr, four bool) netip.Addr {
	for _, a := range addrs {
		if a.Is4() == four {
			return a
		}
	}
	return netip.Addr{}
}

// find resolves one end, with its candidate addresses. The end that is found first
// determines the tenant.
func (t *tracer) find(what, text string) (traceapi.Place, []netip.Addr, error) {
	if text == "" {
		return traceapi.Place{}, nil, errs.New(errs.Invalid, "%s: expected an endpoint or an address", what)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return t.findAddress(what, a.Unmap())
	}
	if ep := t.cluster.EndpointNamed(text); ep != nil {
		place, addrs := t.place(ep)
		return place, addrs, nil
	}
	if addrs := t.cluster.ServiceAt(text, cmp.Or(t.tenant, "default")); len(addrs) > 0 {
		return traceapi.Place{Name: "service " + text}, addrs, nil
	}
	return traceapi.Place{}, nil, errs.New(errs.NotFound,
		"%s: no endpoint %.80q; give (part of) the id of an endpoint or of its container, its container's name, or an address", what, text)
}

func (t *tracer) findAddress(what string, a netip.Addr) (traceapi.Place, []netip.Addr, error) {
	found := t.cluster.EndpointsAt(a, t.tenant)
	switch len(found) {
	case 0:
		return traceapi.Place{Name: a.String()}, []netip.Addr{a}, nil
	case 1:
		place, _ := t.place(found[0])
		return place, []netip.Addr{a}, nil
	}
	names := make([]string, len(found))
	for i, ep := range found {
		names[i] = ep.ID
	}
	return traceapi.Place{}, nil, errs.New(errs.Invalid, "%s: %v is the address of several endpoints, %s; give a tenant, or an id", what, a, strings.Join(names, ", "))
}

func (t *tracer) place(ep *state.Endpoint) (traceapi.Place, []netip.Addr) {
	if t.tenant == "" {
		_, t.tenant = t.cluster.NetworkOf(ep)
	}
	var addrs []netip.Addr
	for _, text := range []string{ep.IPAddress, ep.IPv6Address} {
		if a, err := netip.ParseAddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	return traceapi.Place{Endpoint: ep.ID, Name: cmp.Or(ep.EPCommonName, ep.ContainerID, ep.ID), Host: ep.HomingHost}, addrs
}

// follow asks one host after the other. An error is that of the last host; end is then
// where the packet has left the one before.
func (t *tracer) follow(ctx context.Context, host string, req traceapi.HopRequest, to traceapi.Place) (hops []traceapi.Hop, end traceapi.End, err error) {
	for range mostHops {
		if host == "" {
			return hops, end, errs.New(errs.NotFound, "endpoint %s is on no host", req.Endpoint)
		}
		hop, err := t.agents.Trace(ctx, host, req)
		if err != nil {
			return hops, end, err
		}
		hops = append(hops, *hop)
		end = t.choose(hop.Ends, to)
		switch end.Kind {
		case traceapi.Tunnelled:
			next := t.hostAt(end.VTEP)
			if next == "" {
				return hops, end, nil
			}
			own, _ := netip.ParseAddr(t.hosts[host].VtepIP)
			host, req = next, traceapi.HopRequest{VNI: end.VNI, VTEP: own, Packet: end.Packet}
		case traceapi.Uplinked:
			next := t.hostOf(end.Packet.Dst, to)
			if next == "" || next == host || end.VLAN == 0 {
				return hops, end, nil
			}
			host, req = next, traceapi.HopRequest{VLAN: end.VLAN, Packet: end.Packet}
		default:
			return hops, end, nil
		}
	}
	return hops, end, errs.New(errs.Internal, "after %d hosts it has not arrived", mostHops)
}

// choose finds, where a packet goes to several places, the one that leads to its
// receiver.
func (t *tracer) choose(ends []traceapi.End, to traceapi.Place) traceapi.End {
	rank := func(e traceapi.End) int {
		switch {
		case e.Kind == traceapi.Delivered && e.Endpoint == to.Endpoint:
			return 3
		case e.Kind == traceapi.Tunnelled && to.Host != "" && t.hostAt(e.VTEP) == to.Host:
			return 2
		case e.Kind == traceapi.Uplinked:
			return 1
		}
		return 0
	}
	best := ends[0]
	for _, e := range ends[1:] {
		if rank(e) > rank(best) {
			best = e
		}
	}
	return best
}

// hostAt finds a host by its tunnel address.
func (t *tracer) hostAt(vtep netip.Addr) string {
	for label, h := range t.hosts {
		if a, err := netip.ParseAddr(h.VtepIP); err == nil && a == vtep {
			return label
		}
	}
	return ""
}

// hostOf finds the host of an endpoint by the packet's present destination.
func (t *tracer) hostOf(a netip.Addr, to traceapi.Place) string {
	if found := t.cluster.EndpointsAt(a, t.tenant); len(found) == 1 {
		return found[0].HomingHost
	}
	return to.Host
}

// named puts the names of both ends into the result.
func (t *tracer) named(out *traceapi.Trace) *traceapi.Trace {
	var pairs []string
	for _, p := range []traceapi.Place{out.From, out.To} {
		if p.Endpoint != "" {
			pairs = append(pairs, p.Endpoint, p.Name)
		}
	}
	r := strings.NewReplacer(pairs...)
	out.Verdict = r.Replace(out.Verdict)
	for _, hops := range [][]traceapi.Hop{out.Request, out.Reply} {
		for i := range hops {
			hops[i].From = r.Replace(hops[i].From)
			for j := range hops[i].Steps {
				hops[i].Steps[j].Words = r.Replace(hops[i].Steps[j].Words)
			}
			for j := range hops[i].Ends {
				hops[i].Ends[j].Words = r.Replace(hops[i].Ends[j].Words)
			}
		}
	}
	return out
}
