package flowlog

import (
	"fmt"
	"net/netip"
	"time"
	"unique"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state/flowapi"
)

// denial is what denied packets have in common that are joined into one record.
type denial struct {
	by       ofnet.Denial
	number   uint32
	rejected bool
	endpoint string
	tenant   string
	ethType  uint16
	proto    uint8
	src, dst netip.Addr
	port     uint16
}

// joined is a record that further packets are joined into.
type joined struct {
	record uint64
	until  time.Time
	more   bool // the record has changed since readers were told
}

// deny records a denied packet.
func (l *Log) deny(d drivers.Denied) {
	src, dst := unmapped(d.Src), unmapped(d.Dst)
	if ofnet.IsICMP(d.Proto) {
		src, dst = netip.AddrPortFrom(src.Addr(), 0), netip.AddrPortFrom(dst.Addr(), d.ICMP)
	}
	key := denial{
		by: d.By, number: d.Number, rejected: d.Rejected, endpoint: d.Endpoint, tenant: d.Tenant, ethType: d.EthType, proto: d.Proto,
		src: src.Addr(), dst: dst.Addr(), port: dst.Port(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	if j := l.joining[key]; j != nil && now.Before(j.until) {
		if e := l.ring.at(j.record); e != nil {
			e.end, e.count, j.more = now.UnixNano(), e.count+1, true
			l.hits.count(e.names.Value().tenant, e.names.Value().decisions[0], false, 1, now)
			return
		}
	}
	if len(l.joining) >= mostJoining {
		l.addGap(flowapi.Gap{Host: l.cfg.Host, From: now.UTC(), To: now.UTC(), Count: 1, Why: "more kinds of packets are denied at once than are told apart"})
		return
	}
	if j := l.joining[key]; j != nil && j.more {
		l.changed(j.record)
	}
	e := l.deniedEntry(d, src, dst)
	e.start, e.end, e.count = now.UnixNano(), now.UnixNano(), 1
	l.joining[key] = &joined{record: l.put(e), until: now.Add(joinFor)}
	s := e.names.Value()
	l.hits.count(s.tenant, s.decisions[0], false, 1, now)
}

// endJoined tells of records into which packets were joined. The caller holds mu.
func (l *Log) endJoined(now time.Time) {
	for key, j := range l.joining {
		if now.Before(j.until) {
			continue
		}
		if j.more {
			l.changed(j.record)
		}
		delete(l.joining, key)
	}
}

func (l *Log) deniedEntry(d drivers.Denied, src, dst netip.AddrPort) entry {
	from := l.names.endAt(d.Tenant, src)
	if d.Endpoint != "" {
		from = l.names.endOf(d.Endpoint, d.Tenant, src)
	} else if from.Host == l.cfg.Host {
		from = flowapi.End{Address: src.Addr(), Port: src.Port()} // who sends from elsewhere is not of this host
	}
	if d.By == ofnet.DeniedByTunnel {
		from = flowapi.End{}
		src = netip.AddrPortFrom(d.Tunnel.Unmap(), 0)
	}
	to := l.names.endAt(d.Tenant, dst)
	s := shared{tenant: d.Tenant, verdict: flowapi.Denied, proto: deniedProto(d), service: d.Service}
	if d.Rejected {
		s.verdict = flowapi.Rejected
	}
	decision, audited := l.denier(d, from, to)
	s.audited = audited
	decision.Host, decision.Verdict = l.cfg.Host, s.verdict
	s.decisions[0] = decision
	if d.By == ofnet.DeniedByRule { // what denied otherwise stands before the rules
		s.wouldBe = l.audit(s, d.Proto, src, dst, from, to, 1, l.cfg.Now())
	}
	e := entry{src: src, dst: dst, srcEnd: shareEnd(from), dstEnd: shareEnd(to)}
	if d.Asked.IsValid() {
		e.asked = d.Asked
		s.service = l.names.service(d.Tenant, d.Proto, unmapped(d.Asked))
	}
	e.names = unique.Make(s)
	return e
}

// denier says what denied a packet, at which end, and whether that goes to the audit file.
func (l *Log) denier(d drivers.Denied, from, to flowapi.End) (out flowapi.Decision, audited bool) {
	out.At = flowapi.AtSource
	switch d.By {
	case ofnet.DeniedByRule:
		out.At = l.place(from, to)
		out.By, out.Policy = flowapi.ByRule, "?"
		if by, known := l.names.decider(d.Number); known {
			out.By, out.Policy, out.Rule, audited = by.by, by.policy, by.rule, by.audited
		}
	case ofnet.DeniedByPolicyOut:
		out.By, out.Policy = flowapi.ByDefault, l.names.isolating(from.Endpoint, true)
	case ofnet.DeniedByPolicyIn:
		out.At = flowapi.AtDestination
		out.By, out.Policy = flowapi.ByDefault, l.names.isolating(to.Endpoint, false)
	case ofnet.DeniedBySource:
		out.By = flowapi.ByAntiSpoofing
	case ofnet.DeniedByFrame:
		out.By = flowapi.ByFrame
	case ofnet.DeniedByReach:
		out.By = flowapi.ByControlPlane
	case ofnet.DeniedByTunnel:
		out.At, out.By = flowapi.AtDestination, flowapi.ByTunnel
	default:
		out.By = flowapi.ByService
	}
	return out, audited
}

const ethTypeARP = 0x0806

// deniedProto names what a packet is: its IP protocol, ARP, or the type of its frame.
func deniedProto(d drivers.Denied) string {
	switch {
	case d.Src.Addr().IsValid() && d.EthType != ethTypeARP:
		return flowapi.ProtoName(d.Proto)
	case d.EthType == ethTypeARP:
		return "arp"
	}
	return fmt.Sprintf("ethertype 0x%04x", d.EthType)
}
