package ofnet

import (
	"context"
	"errors"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
)

// bridgeChannel is the real Channel: one OpenFlow connection.
type bridgeChannel struct{ conn *ofctrl.Conn }

func dialBridge(ctx context.Context, target string) (Channel, error) {
	conn, err := ofctrl.Dial(ctx, ofctrl.Config{Target: target})
	if err != nil {
		return nil, err
	}
	return &bridgeChannel{conn}, nil
}

func (c *bridgeChannel) Dump(ctx context.Context, yield func(of.Flow)) error {
	return c.conn.DumpFlows(ctx, 0, 0, func(f of.FlowStats) error {
		yield(f.Flow)
		return nil
	})
}

func (c *bridgeChannel) Apply(ctx context.Context, changes []FlowChange) error {
	mods := make([]of.Message, len(changes))
	for i, ch := range changes {
		if ch.Remove {
			mods[i] = of.DeleteFlow(ch.Flow.Key())
		} else {
			mods[i] = of.AddFlow(ch.Flow)
		}
	}
	err := c.conn.Bundle(ctx, mods)
	var refused *ofctrl.MessageError
	if errors.As(err, &refused) {
		return &Refused{err}
	}
	return err
}

func (c *bridgeChannel) Done() <-chan struct{} { return c.conn.Done() }
func (c *bridgeChannel) Close() error          { return c.conn.Close() }
