package intent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// markKey is the commit mark: the number of the last transaction of the latest term. See
// the package comment.
const markKey = state.OperRoot + "netmaster/commit"

// Intervals for repeating a transaction whose outcome is unknown.
const (
	firstPause = 20 * time.Millisecond
	longPause  = 500 * time.Millisecond
	tryFor     = 3 * time.Second // one try
)

// errOver says that the leadership term is over: nothing more may be written.
var errOver = errors.New("the leadership term is over")

// committer turns planned transactions into fenced ones and determines their outcome. It is
// used by the writer only.
type committer struct {
	store objdb.Store
	lead  objdb.Leadership
	log   logrus.FieldLogger
	pause time.Duration // before the first repetition; doubles up to longPause
	seq   uint64
	mark  []byte // value of markKey as of the last commit
	rev   int64  // revision of the last commit

	written written
}

// written holds the store revisions of the last write of what agents read. It may be read
// from any goroutine.
type written struct{ state, settings atomic.Int64 }

// note records that a key, or all keys with that prefix, were written at a revision. It is
// called by the writer only.
func (w *written) note(key string, rev int64) {
	switch {
	case strings.HasPrefix(key, state.StateRoot):
		w.state.Store(max(w.state.Load(), rev))
	case key == state.GlobalKey:
		w.settings.Store(max(w.settings.Load(), rev))
	}
}

// room is how many operations and comparisons a plan may contain: the limit of a store
// transaction minus the mark and the fence.
func (c *committer) room() int { return c.store.MaxOps() - 2 }

// over reports whether an error of commit means the end of the term.
func (c *committer) over(err error) bool { return errors.Is(err, errOver) }

// begin sets the commit mark for the term.
func (c *committer) begin(ctx context.Context) error {
	mark := fmt.Appendf(nil, "%d/0", c.lead.Fence().Revision)
	rev, err := c.store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{c.lead.Fence()}, Then: []objdb.Op{objdb.Put(markKey, mark)}})
	if err != nil {
		return fmt.Errorf("set the commit mark: %w", err)
	}
	c.mark, c.rev = mark, rev
	return nil
}

// commit applies what x has planned and returns the revision of the commit. If it fails
// nothing has been applied, unless the error is errOver.
func (c *committer) commit(ctx context.Context, x *tx) (int64, error) {
	txn, err := x.operations()
	if err != nil || len(txn.Then) == 0 {
		return c.rev, err
	}
	// A quarter: Consul's default request holds some 380 KiB of values.
	if max(len(txn.Then), len(txn.If)) > c.room() || bytesOf(txn) > objdb.MaxTxnBytes/4 {
		return c.commitLarge(ctx, txn)
	}
	return c.send(ctx, txn)
}

// send sends a transaction until its outcome is known or the leadership term is over.
func (c *committer) send(ctx context.Context, txn objdb.Txn) (int64, error) {
	next := fmt.Appendf(nil, "%d/%d", c.lead.Fence().Revision, c.seq+1)
	txn.If = slices.Concat([]objdb.Cmp{c.lead.Fence(), {Type: objdb.CmpValue, Key: markKey, Value: c.mark}}, txn.If)
	txn.Then = append(slices.Clone(txn.Then), objdb.Put(markKey, next))
	pauses := retry.New(c.pause, longPause)
	for try := 1; ; try++ {
		rev, err := c.try(ctx, txn, next)
		switch kind := errs.KindOf(err); {
		case err == nil:
			c.seq, c.mark, c.rev = c.seq+1, next, rev
			for _, op := range txn.Then {
				c.written.note(op.Key, rev)
			}
			return rev, nil
		case c.over(err), kind == errs.Invalid, kind == errs.Conflict:
			return 0, err
		case try == 1:
			c.log.WithError(err).Warn("the store did not acknowledge a write; retrying until it does")
		}
		timer := time.NewTimer(pauses.Next())
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-c.lead.Lost():
		}
		timer.Stop()
		if ctx.Err() != nil || isClosed(c.lead.Lost()) {
			return 0, errs.New(errs.Unavailable, "no answer from the store, and this netmaster is no longer the leader; the change may have been made, "+
				"repeat the request: %w (%w)", err, errOver)
		}
	}
}

// try sends a transaction once. If the store rejects it, try finds out why: kind Conflict
// means that one of its own comparisons failed.
func (c *committer) try(ctx context.Context, txn objdb.Txn, next []byte) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	rev, err := c.store.Commit(ctx, txn)
	if !errors.Is(err, objdb.ErrCompareFailed) {
		return rev, err
	}
	kv, err := c.store.Get(ctx, markKey)
	if err != nil && !errs.Is(err, errs.NotFound) {
		return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("read the commit mark: %w", err))
	}
	if err == nil && bytes.Equal(kv.Value, next) {
		return kv.ModRevision, nil // an earlier try was applied after all
	}
	led, gerr := c.fenced(ctx)
	switch {
	case gerr != nil:
		return 0, gerr
	case !led:
		return 0, errs.New(errs.Unavailable, "not the leader any more, retry the request (%w)", errOver)
	case err != nil || !bytes.Equal(kv.Value, c.mark):
		return 0, c.giveUp(ctx, "the commit mark is not the one this leader wrote: the store was restored from a backup or changed by hand")
	}
	for _, cmp := range txn.If {
		if cmp.Type != objdb.CmpAbsent {
			continue
		}
		switch _, err := c.store.Get(ctx, cmp.Key); {
		case err == nil:
			return 0, c.giveUp(ctx, cmp.Key+" exists although this leader did not write it")
		case !errs.Is(err, errs.NotFound):
			return 0, errs.Wrap(errs.Unavailable, fmt.Errorf("read %s: %w", cmp.Key, err))
		}
	}
	return 0, errs.New(errs.Conflict, "the store refused the change")
}

// fenced reports whether the term's fence holds in the store.
func (c *committer) fenced(ctx context.Context) (bool, error) {
	fence := c.lead.Fence()
	kv, err := c.store.Get(ctx, fence.Key)
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, errs.Wrap(errs.Unavailable, fmt.Errorf("read the leader lock: %w", err))
	}
	switch fence.Type {
	case objdb.CmpCreate:
		return kv.CreateRevision == fence.Revision, nil
	case objdb.CmpModRevision:
		return kv.ModRevision == fence.Revision, nil
	case objdb.CmpValue:
		return bytes.Equal(kv.Value, fence.Value), nil
	default:
		return fence.Type == objdb.CmpPresent, nil
	}
}

// giveUp ends the term because memory and store disagree: the next leader, possibly this
// process, starts from the store's content.
func (c *committer) giveUp(ctx context.Context, why string) error {
	c.log.Errorf("releasing leadership to reload state from the store: %s", why)
	if err := c.lead.Resign(ctx); err != nil {
		c.log.WithError(err).Warn("cannot release the leader lock")
	}
	return errs.New(errs.Unavailable, "netmaster is reloading its state from the store, retry the request: %s (%w)", why, errOver)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
