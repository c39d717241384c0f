package ofctrl

import (
	"context"
	"fmt"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// bundleFlags make every bundle atomic and ordered.
const bundleFlags = of.BundleAtomic | of.BundleOrdered

// Bundle applies flow-mods and group-mods, in order, all or none: no packet sees a part of
// them, and if the switch rejects one, none takes effect. The error then, of kind Invalid,
// wraps a *MessageError that names it.
//
// If ctx ends, or the connection fails, while the switch commits, the error is that of ctx
// or of the connection, and the outcome is unknown until the flows are dumped.
func (c *Conn) Bundle(ctx context.Context, mods []of.Message) error {
	if len(mods) == 0 {
		return nil
	}
	b := &bundle{c: c, id: c.bundles.Add(1), mods: mods}
	n := uint32(len(mods))
	// Open, the mods, a barrier, and the commit or the discard.
	first := c.w.xids(n + 3)
	b.call = c.pending.add(first, n+3)
	defer c.pending.remove(b.call)
	err := c.written(c.w.sendAll(first, b.messages))
	if err != nil {
		b.discard(first + n + 2)
		return err
	}
	// The switch would commit what it has accepted even if it has rejected another
	// message, so the commit must wait until all are known to be accepted.
	refused, err := c.awaitBarrier(ctx, b.call, n+1, b.message)
	if err == nil && len(refused) > 0 {
		err = refuse("bundle", refused, len(mods))
	}
	if err != nil {
		b.discard(first + n + 2)
		return err
	}
	if err := c.write(first+n+2, b.control(of.BundleCommit)); err != nil {
		return err
	}
	return b.awaitCommit(ctx)
}

// bundle is the state of one call of Bundle.
type bundle struct {
	c    *Conn
	id   uint32
	mods []of.Message
	call *call
}

func (b *bundle) control(step of.BundleType) of.Message {
	return &of.BundleControl{Bundle: b.id, Step: step, Flags: bundleFlags}
}

// messages yields everything up to the barrier.
func (b *bundle) messages(yield func(of.Message) bool) {
	if !yield(b.control(of.BundleOpen)) {
		return
	}
	// The writer encodes each message before it asks for the next.
	add := &of.BundleAdd{Bundle: b.id, Flags: bundleFlags}
	for _, m := range b.mods {
		if add.Message = m; !yield(add) {
			return
		}
	}
	yield(&of.BarrierRequest{})
}

// message returns the mod for a message's index in the call.
func (b *bundle) message(i uint32) (int, of.Message) {
	if i >= 1 && int(i) <= len(b.mods) {
		return int(i) - 1, b.mods[i-1]
	}
	if i == 0 {
		return -1, b.control(of.BundleOpen)
	}
	return -1, b.control(of.BundleCommit)
}

// discard makes the switch drop the bundle. It does not wait: nothing depends on it, and
// the switch drops the bundles of a lost connection by itself.
func (b *bundle) discard(xid uint32) {
	if err := b.c.write(xid, b.control(of.BundleDiscard)); err != nil {
		b.c.cfg.Log.WithError(err).Debug("bundle not discarded")
	}
}

// awaitCommit waits for the reply to the commit. If the switch rejects a mod only now, it
// sends an error for the mod and then one for the commit.
func (b *bundle) awaitCommit(ctx context.Context) error {
	var refused []error
	last := uint32(len(b.mods)) + 2
	for {
		replies, err := b.call.next(ctx)
		if err != nil {
			return fmt.Errorf("commit a bundle of %d messages, outcome unknown: %w", len(b.mods), err)
		}
		for _, r := range replies {
			switch m := r.msg.(type) {
			case *of.Error:
				if r.index != last || len(refused) == 0 {
					i, msg := b.message(r.index)
					refused = append(refused, &MessageError{Index: i, Message: msg, Err: m})
				}
				if r.index == last {
					return refuse("bundle", refused, len(b.mods))
				}
			case *of.BundleControl:
				if r.index == last && m.Step == of.BundleCommitReply {
					return nil
				}
			case nil:
				return errs.Wrap(errs.Internal, r.bad)
			}
		}
	}
}
