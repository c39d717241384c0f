package ofnet

import (
	"context"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// ServiceCount counts what a container of this host has exchanged with a provider of a
// frontend.
type ServiceCount struct {
	Frontend uint32
	Client   netip.Addr
	Provider netip.AddrPort
	Proto    uint8
	Out, In  of.Counter // to the provider, and from it
}

// exchange is what the counters of both directions have in common.
type exchange struct {
	client   netip.Addr
	provider netip.AddrPort
	proto    uint8
}

// ServiceCounts reads the counters that the bridge has learned. Replies of a provider are
// not counted by frontend: where a client has used a provider through several frontends,
// one of them gets all replies.
func (s *Switch) ServiceCounts(ctx context.Context) ([]ServiceCount, error) {
	const mask = 0xff<<cookieFeatureShift | cookieLearned
	in := map[exchange]of.Counter{}
	var out []ServiceCount
	err := s.Counters(ctx, learned(featureCountIn), mask, func(f of.FlowStats) {
		if e, ok := exchangeOf(f.Match, true); ok {
			in[e] = of.Counter{Packets: f.Packets, Bytes: f.Bytes}
		}
	})
	if err != nil {
		return nil, err
	}
	err = s.Counters(ctx, learned(featureCountOut), mask, func(f of.FlowStats) {
		e, ok := exchangeOf(f.Match, false)
		frontend, ok2 := f.Match.Get(regService.field())
		if !ok || !ok2 {
			return
		}
		out = append(out, ServiceCount{
			Frontend: uint32(frontend.Uint64()), Client: e.client, Provider: e.provider, Proto: e.proto,
			Out: of.Counter{Packets: f.Packets, Bytes: f.Bytes}, In: in[e],
		})
		delete(in, e)
	})
	return out, err
}

// exchangeOf parses the match of a learned flow; for replies, provider and client are
// swapped.
func exchangeOf(m of.Match, answers bool) (e exchange, ok bool) {
	proto, ok := m.Get(of.FieldIPProto)
	if !ok {
		return e, false
	}
	e.proto = uint8(proto.Uint64())
	srcPort, dstPort := portFields(e.proto)
	for _, ip := range ipFamilies() {
		client, provider, port := ip.src, ip.dst, dstPort
		if answers {
			client, provider, port = ip.dst, ip.src, srcPort
		}
		c, ok1 := m.Get(client)
		v, ok2 := m.Get(provider)
		n, ok3 := m.Get(port)
		if ok1 && ok2 && ok3 {
			e.client, e.provider = c.Addr(), netip.AddrPortFrom(v.Addr(), uint16(n.Uint64()))
			return e, true
		}
	}
	return e, false
}
