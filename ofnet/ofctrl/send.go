package ofctrl

import (
	"context"
	"errors"
	"fmt"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// MessageError says which message was rejected, and why.
type MessageError struct {
	Index   int        // of the message in the list
	Message of.Message // that was rejected
	Err     error      // *of.Error from the switch, or that of encoding
}

// Error names the message in the syntax of ovs-ofctl.
func (e *MessageError) Error() string {
	why := e.Err.Error()
	var sw *of.Error
	if errors.As(e.Err, &sw) {
		why = sw.Name()
	}
	return fmt.Sprintf("%s: %s", of.Text(e.Message), why)
}

// Unwrap returns Err.
func (e *MessageError) Unwrap() error { return e.Err }

// refuse makes an error of kind Invalid from the switch's errors.
func refuse(what string, errors []error, total int) error {
	if len(errors) == 1 {
		return errs.New(errs.Invalid, "%s: %w", what, errors[0])
	}
	return errs.New(errs.Invalid, "%s: %d of %d messages rejected, the first: %w", what, len(errors), total, errors[0])
}

// maxErrors limits the errors kept per call.
const maxErrors = 64

// Send sends messages in order without a bundle and waits until the switch has processed
// them all. Those it accepts take effect even if others are rejected; the error, of kind
// Invalid, wraps a *MessageError for the first one rejected.
func (c *Conn) Send(ctx context.Context, msgs []of.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	n := uint32(len(msgs))
	first := c.w.xids(n + 1)
	call := c.pending.add(first, n+1)
	defer c.pending.remove(call)
	err := c.written(c.w.sendAll(first, func(yield func(of.Message) bool) {
		for _, m := range msgs {
			if !yield(m) {
				return
			}
		}
		yield(&of.BarrierRequest{})
	}))
	if err != nil {
		return err
	}
	refused, err := c.awaitBarrier(ctx, call, n, func(i uint32) (int, of.Message) { return int(i), msgs[i] })
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return refuse("send to OpenFlow switch", refused, len(msgs))
	}
	return nil
}

// write writes one message; an error of the connection ends the connection.
func (c *Conn) write(xid uint32, m of.Message) error {
	return c.written(c.w.send(xid, m))
}

// written judges the result of a write.
func (c *Conn) written(err error) error {
	var bad *MessageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		if add, ok := bad.Message.(*of.BundleAdd); ok {
			bad = &MessageError{Index: bad.Index - 1, Message: add.Message, Err: bad.Err}
		}
		return errs.Wrap(errs.Invalid, bad)
	}
	c.fail(fmt.Errorf("write: %w", err))
	<-c.done
	return c.err
}

// awaitBarrier collects errors until the barrier, message number barrier of the call, is
// answered. name returns the message for a number.
func (c *Conn) awaitBarrier(ctx context.Context, call *call, barrier uint32, name func(uint32) (int, of.Message)) (refused []error, err error) {
	for {
		replies, err := call.next(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range replies {
			switch m := r.msg.(type) {
			case *of.Error:
				if r.index == barrier {
					return nil, fmt.Errorf("barrier: %w", m)
				}
				if len(refused) < maxErrors {
					i, msg := name(r.index)
					refused = append(refused, &MessageError{Index: i, Message: msg, Err: m})
				}
			case *of.BarrierReply:
				if r.index == barrier {
					return refused, nil
				}
			case nil:
				return nil, r.bad
			}
		}
	}
}

// Barrier waits until the switch has processed everything sent before.
func (c *Conn) Barrier(ctx context.Context) error {
	xid := c.w.xids(1)
	call := c.pending.add(xid, 1)
	defer c.pending.remove(call)
	if err := c.write(xid, &of.BarrierRequest{}); err != nil {
		return err
	}
	_, err := c.awaitBarrier(ctx, call, 0, nil)
	return err
}

// PacketOut sends a packet and does not wait. If the switch rejects it, this is only
// logged.
func (c *Conn) PacketOut(m *of.PacketOut) error {
	return c.write(c.w.xids(1), m)
}

// Resume continues a packet that a controller action has paused, and does not wait.
func (c *Conn) Resume(in *of.PacketIn) error {
	return c.write(c.w.xids(1), &of.Resume{Paused: in.Paused})
}
