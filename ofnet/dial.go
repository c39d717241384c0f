package ofnet

import (
	"context"
	"errors"
	"sync/atomic"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
)

// bridgeChannel is the real Channel: one OpenFlow connection.
type bridgeChannel struct{ conn *ofctrl.Conn }

// agentParts are the parts of pipelines that run in the agent.
type agentParts struct {
	dns    func(*DNSQuery)
	denied func(*DeniedPacket) // nil: denials are not logged
	counts *packetIns
}

// packetIns counts the packets that flows have sent to the agent, by kind.
type packetIns struct{ queries, solicitations, rejections, denials, malformed atomic.Uint64 }

func (a agentParts) dial(ctx context.Context, target string) (Channel, error) {
	// Packets that arrive before Dial has returned wait for conn.
	ready := make(chan struct{})
	var conn *ofctrl.Conn
	dialled, err := ofctrl.Dial(ctx, ofctrl.Config{Target: target, Userdata: true, PacketIn: func(in *of.PacketIn) {
		<-ready
		a.handle(conn, in)
	}})
	if err != nil {
		return nil, err
	}
	conn = dialled
	close(ready)
	return &bridgeChannel{conn}, nil
}

// packetSender sends replies. Its errors can be ignored: a broken connection is noticed
// elsewhere.
type packetSender interface {
	PacketOut(*of.PacketOut) error
	Resume(*of.PacketIn) error
}

// handle does what a flow has sent a packet to the agent for.
func (a agentParts) handle(conn packetSender, in *of.PacketIn) {
	if string(in.Userdata) == dnsUserdata {
		switch q, err := parseDNS(conn, in); {
		case err != nil:
			a.counts.malformed.Add(1)
		case a.dns == nil:
			a.counts.queries.Add(1)
			q.Pass()
		default:
			a.counts.queries.Add(1)
			a.dns(q)
		}
		return
	}
	answer, count := answerSolicitation, &a.counts.solicitations
	switch cookieFeature(in.Cookie) {
	case featureFlowLog:
		a.counts.denials.Add(1)
		a.log(in, false)
		return
	case featureReject:
		answer, count = answerRejected, &a.counts.rejections
	}
	out := answer(in)
	if cookieFeature(in.Cookie) == featureReject {
		a.log(in, out != nil)
	}
	if out == nil {
		a.counts.malformed.Add(1)
		return
	}
	count.Add(1)
	_ = conn.PacketOut(out)
}

// log tells the flow log of a packet.
func (a agentParts) log(in *of.PacketIn, rejected bool) {
	if a.denied == nil {
		return
	}
	d := parseDenied(in)
	d.Rejected = rejected
	a.denied(d)
}

func (c *bridgeChannel) Dump(ctx context.Context, yield func(of.Flow)) error {
	return c.conn.DumpFlows(ctx, 0, 0, func(f of.FlowStats) error {
		yield(f.Flow)
		return nil
	})
}

func (c *bridgeChannel) Stats(ctx context.Context, cookie, mask uint64, yield func(of.FlowStats)) error {
	return c.conn.DumpFlows(ctx, cookie, mask, func(f of.FlowStats) error {
		yield(f)
		return nil
	})
}

func (c *bridgeChannel) DumpGroups(ctx context.Context) ([]of.Group, error) {
	return c.conn.DumpGroups(ctx)
}

func (c *bridgeChannel) DumpMeters(ctx context.Context) ([]of.Meter, error) {
	return c.conn.DumpMeters(ctx)
}

// MeterStats is not in Channel, because nothing depends on it.
func (c *bridgeChannel) MeterStats(ctx context.Context) ([]of.MeterStats, error) {
	return c.conn.DumpMeterStats(ctx)
}

func (c *bridgeChannel) Apply(ctx context.Context, mods []of.Message) error {
	return judge(c.conn.Bundle(ctx, mods))
}

func (c *bridgeChannel) Send(ctx context.Context, mods []of.Message) error {
	return judge(c.conn.Send(ctx, mods))
}

// judge distinguishes rejected changes from a broken connection.
func judge(err error) error {
	var refused *ofctrl.MessageError
	if errors.As(err, &refused) {
		return &Refused{err}
	}
	return err
}

func (c *bridgeChannel) Done() <-chan struct{} { return c.conn.Done() }
func (c *bridgeChannel) Close() error          { return c.conn.Close() }
