package main

import (
	"context"
	"sync/atomic"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet"
)

// channel is an OpenFlow connection to a switch in memory, which is empty at the start, takes
// every change, and only counts. Messages are encoded, as for a real one.
type channel struct {
	messages, bytes *atomic.Int64
	buf             []byte
}

var _ ofnet.Channel = (*channel)(nil)

// Dump implements ofnet.Channel.
func (*channel) Dump(context.Context, func(of.Flow)) error { return nil }

// Stats implements ofnet.Channel.
func (*channel) Stats(context.Context, uint64, uint64, func(of.FlowStats)) error { return nil }

// DumpGroups implements ofnet.Channel.
func (*channel) DumpGroups(context.Context) ([]of.Group, error) { return nil, nil }

// DumpMeters implements ofnet.Channel.
func (*channel) DumpMeters(context.Context) ([]of.Meter, error) { return nil, nil }

// Apply implements ofnet.Channel.
func (c *channel) Apply(_ context.Context, mods []of.Message) error {
	for _, m := range mods {
		var err error
		if c.buf, err = of.Append(c.buf[:0], 0, m); err != nil {
			return &ofnet.Refused{Err: err}
		}
		c.messages.Add(1)
		c.bytes.Add(int64(len(c.buf)))
	}
	return nil
}

// Send implements ofnet.Channel.
func (c *channel) Send(ctx context.Context, mods []of.Message) error { return c.Apply(ctx, mods) }

// Done implements ofnet.Channel; the connection never ends by itself.
func (*channel) Done() <-chan struct{} { return nil }

// Close implements ofnet.Channel.
func (*channel) Close() error { return nil }
