package ofctrl

import (
	"context"
	"fmt"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Multipart sends a request and calls yield with the content of each reply, in order, from
// the caller's goroutine. An error of yield ends it and is returned.
func (c *Conn) Multipart(ctx context.Context, req *of.MultipartRequest, yield func(of.MultipartBody) error) error {
	xid := c.w.xids(1)
	call := c.pending.add(xid, 1)
	defer c.pending.remove(call)
	if err := c.write(xid, req); err != nil {
		return err
	}
	for {
		replies, err := call.next(ctx)
		if err != nil {
			return err
		}
		for _, r := range replies {
			switch m := r.msg.(type) {
			case *of.MultipartReply:
				if err := yield(m.Body); err != nil {
					return err
				}
				if !m.More {
					return nil
				}
			case *of.Error:
				return errs.Wrap(errs.Invalid, &MessageError{Message: req, Err: m})
			case nil:
				return r.bad
			default:
				return fmt.Errorf("%s in reply to %s", m.Type(), req.Type())
			}
		}
	}
}

// DumpFlows calls yield with each flow of every table whose cookie equals cookie in the
// bits of mask, as they arrive. An error of yield ends it and is returned.
func (c *Conn) DumpFlows(ctx context.Context, cookie, mask uint64, yield func(of.FlowStats) error) error {
	req := &of.MultipartRequest{Kind: of.MultipartFlow, Flows: of.AllFlows(cookie, mask)}
	err := c.Multipart(ctx, req, each(yield))
	if err != nil {
		return fmt.Errorf("dump flows: %w", err)
	}
	return nil
}

// DumpGroups returns the groups of the switch.
func (c *Conn) DumpGroups(ctx context.Context) ([]of.Group, error) {
	return dump[of.GroupDescList](ctx, c, of.MultipartGroupDesc, "groups")
}

// DumpMeters returns the meters of the switch.
func (c *Conn) DumpMeters(ctx context.Context) ([]of.Meter, error) {
	return dump[of.MeterConfigList](ctx, c, of.MultipartMeterConfig, "meters")
}

// DumpMeterStats returns the counters of all meters.
func (c *Conn) DumpMeterStats(ctx context.Context) ([]of.MeterStats, error) {
	return dump[of.MeterStatsList](ctx, c, of.MultipartMeterStats, "meter statistics")
}

// DumpPorts returns the ports of the switch.
func (c *Conn) DumpPorts(ctx context.Context) ([]of.Port, error) {
	return dump[of.PortDescList](ctx, c, of.MultipartPortDesc, "ports")
}

// DumpGroupStats returns the counters of all groups.
func (c *Conn) DumpGroupStats(ctx context.Context) ([]of.GroupStats, error) {
	return dump[of.GroupStatsList](ctx, c, of.MultipartGroupStats, "group statistics")
}

// DumpPortStats returns the counters of all ports.
func (c *Conn) DumpPortStats(ctx context.Context) ([]of.PortStats, error) {
	return dump[of.PortStatsList](ctx, c, of.MultipartPortStats, "port statistics")
}

// Aggregate returns the number of flows that req selects, and their packets and bytes; nil
// selects all.
func (c *Conn) Aggregate(ctx context.Context, req *of.FlowRequest) (of.AggregateStats, error) {
	var sum of.AggregateStats
	m := &of.MultipartRequest{Kind: of.MultipartAggregate, Flows: req}
	err := c.Multipart(ctx, m, func(b of.MultipartBody) error {
		s, ok := b.(*of.AggregateStats)
		if !ok {
			return fmt.Errorf("unexpected reply: %T", b)
		}
		sum = *s
		return nil
	})
	if err != nil {
		return sum, fmt.Errorf("aggregate flows: %w", err)
	}
	return sum, nil
}

// Desc returns how the switch describes itself.
func (c *Conn) Desc(ctx context.Context) (of.Desc, error) {
	var d of.Desc
	err := c.Multipart(ctx, &of.MultipartRequest{Kind: of.MultipartDesc}, func(b of.MultipartBody) error {
		x, ok := b.(*of.Desc)
		if !ok {
			return fmt.Errorf("unexpected reply: %T", b)
		}
		d = *x
		return nil
	})
	if err != nil {
		return d, fmt.Errorf("describe switch: %w", err)
	}
	return d, nil
}

// each adapts a yield of flows to one of replies.
func each(yield func(of.FlowStats) error) func(of.MultipartBody) error {
	return func(b of.MultipartBody) error {
		list, ok := b.(of.FlowStatsList)
		if !ok {
			return fmt.Errorf("unexpected reply: %T", b)
		}
		for _, s := range list {
			if err := yield(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// dump collects the replies of a kind whose content is a list.
func dump[L interface {
	~[]E
	of.MultipartBody
}, E any](ctx context.Context, c *Conn, kind of.MultipartType, what string) ([]E, error) {
	var all []E
	err := c.Multipart(ctx, &of.MultipartRequest{Kind: kind, ID: of.AllIDs}, func(b of.MultipartBody) error {
		list, ok := b.(L)
		if !ok {
			return fmt.Errorf("unexpected reply: %T", b)
		}
		all = append(all, list...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", what, err)
	}
	return all, nil
}
