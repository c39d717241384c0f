package flowlog

import (
	"context"
	"net/netip"
	"strconv"
	"time"
	"unique"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state/flowapi"
)

// connection identifies a connection in the switch's table.
type connection struct {
	vrf      uint16
	proto    uint8
	src, dst netip.AddrPort
}

// tracked is a connection that was there at the last reading.
type tracked struct {
	number uint64 // of its record; 0: it has none
	seen   bool   // at the reading in hand
	closed bool   // at the reading in hand
	ended  bool   // although it is still in the table
	// What is known of one without record.
	fresh          *drivers.Connection
	packets, bytes uint64
}

const (
	pollTimeout = 30 * time.Second
	trackedSize = 192 // bytes of a tracked connection, about
)

// poll compares the switch's connections with those of the last reading. Only one
// goroutine does, and so l.open is its own.
func (l *Log) poll(ctx context.Context, source drivers.Connections) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	for _, t := range l.open {
		t.seen, t.closed, t.packets, t.bytes = false, true, 0, 0
	}
	most, left := l.ring.most*entryBytes/trackedSize, uint64(0)
	err := source.Connections(ctx, func(c *drivers.Connection) {
		key := connection{c.VRF, c.Proto, unmapped(c.Src), unmapped(c.Dst)}
		t := l.open[key]
		if t == nil {
			if len(l.open) >= most {
				left++
				return
			}
			t = &tracked{closed: true}
			l.open[key] = t
		}
		t.see(c)
	})
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.open = len(l.open)
	if left > 0 {
		l.addGap(flowapi.Gap{Host: l.cfg.Host, From: now.UTC(), To: now.UTC(), Count: left, Why: "more connections are open than the log has room for (--flow-log-size)"})
	}
	for key, t := range l.open {
		switch {
		case t.seen:
			l.compare(t, now)
		case err == nil: // else it may only not have been read
			l.finish(t, now)
			delete(l.open, key)
		}
	}
	return err
}

// see notes one part of a connection: as it was translated, or as it was decided about.
func (t *tracked) see(c *drivers.Connection) {
	t.seen = true
	t.closed = t.closed && c.Closed
	t.packets, t.bytes = max(t.packets, c.Packets), max(t.bytes, c.Bytes)
	if t.number != 0 && !t.ended {
		return
	}
	if t.fresh == nil {
		one := *c
		t.fresh = &one
		return
	}
	if c.Decided {
		t.fresh.Decided, t.fresh.Rule, t.fresh.Out, t.fresh.In = true, c.Rule, c.Out, c.In
	}
	if c.Service.IsValid() {
		t.fresh.Service = c.Service
	}
}

// compare makes the record of a connection what the reading says. The caller holds mu.
func (l *Log) compare(t *tracked, now time.Time) {
	if t.number == 0 || t.ended && !t.closed { // new, or its ports are in use again
		l.begin(t, now)
	}
	if e := l.ring.at(t.number); e != nil && t.packets > 0 {
		e.packets, e.bytes = t.packets, t.bytes
	}
	if t.closed && !t.ended {
		l.finish(t, now)
	}
	if t.number != 0 {
		t.fresh = nil
	}
}

// begin makes the record of a connection, if it is known to be allowed. The caller holds mu.
func (l *Log) begin(t *tracked, now time.Time) {
	c := t.fresh
	if c == nil {
		return
	}
	src, dst := unmapped(c.Src), unmapped(c.Dst)
	if ofnet.IsICMP(c.Proto) {
		src, dst = netip.AddrPortFrom(src.Addr(), 0), netip.AddrPortFrom(dst.Addr(), c.ICMP)
	}
	from, to := l.names.endAt(c.Tenant, src), l.names.endAt(c.Tenant, dst)
	if !c.Decided && l.names.policed(c.Tenant, from.Endpoint, to.Endpoint) {
		t.fresh = nil // translated; whether it passes is yet to be seen
		return
	}
	s := shared{tenant: c.Tenant, verdict: flowapi.Allowed, proto: flowapi.ProtoName(c.Proto)}
	s.decisions, s.audited = l.decisions(c, from, to)
	if c.Service.IsValid() {
		s.service = l.names.service(c.Tenant, c.Proto, unmapped(c.Service))
	}
	s.wouldBe = l.audit(s, c.Proto, src, dst, from, to, 1, now)
	t.ended = false
	t.number = l.put(entry{
		start: now.UnixNano(), src: src, dst: dst, asked: unmapped(c.Service), srcEnd: shareEnd(from), dstEnd: shareEnd(to),
		names: unique.Make(s), packets: t.packets, bytes: t.bytes, count: 1,
	})
	for _, d := range s.decisions {
		l.hits.count(s.tenant, d, false, 1, now)
	}
}

// finish ends a connection's record. The caller holds mu.
func (l *Log) finish(t *tracked, now time.Time) {
	if t.ended || t.number == 0 {
		return
	}
	t.ended = true
	if e := l.ring.at(t.number); e != nil {
		e.end = now.UnixNano()
		l.changed(t.number)
	}
}

// decisions are what allowed a connection at the ends on this host, and whether that goes to
// the audit file.
func (l *Log) decisions(c *drivers.Connection, from, to flowapi.End) (out [3]flowapi.Decision, audited bool) {
	at := l.place(from, to)
	n := 0
	add := func(number uint32, at string) {
		if number == 0 {
			return
		}
		d, known := l.names.decider(number)
		if !known {
			d = decider{by: flowapi.ByRule, policy: "?", rule: strconv.FormatUint(uint64(number), 16)}
		}
		out[n] = flowapi.Decision{Host: l.cfg.Host, At: at, By: d.by, Policy: d.policy, Rule: d.rule, Verdict: flowapi.Allowed}
		audited = audited || d.audited
		n++
	}
	add(c.Out, flowapi.AtSource)
	add(c.In, flowapi.AtDestination)
	add(c.Rule, at)
	if n == 0 {
		out[0] = flowapi.Decision{Host: l.cfg.Host, At: at, By: flowapi.ByDefault, Verdict: flowapi.Allowed}
	}
	return out, audited
}

// place says which ends are on this host.
func (l *Log) place(from, to flowapi.End) string {
	switch src, dst := from.Host == l.cfg.Host, to.Host == l.cfg.Host; {
	case src && dst:
		return flowapi.AtBoth
	case dst:
		return flowapi.AtDestination
	}
	return flowapi.AtSource
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
