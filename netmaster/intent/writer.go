package intent

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
)

// queueLength is how many requests may be queued before callers have to wait; a transaction
// does not hold more endpoints anyway.
const queueLength = 256

// writer is the goroutine that makes all changes.
type writer struct {
	model   *model
	commits *committer
	log     logrus.FieldLogger
	metrics *metrics
	queue   chan *request
	stopped chan struct{} // closed when run has returned
}

// request is a plan to be run by the writer.
type request struct {
	ctx  context.Context
	solo bool // does not share a transaction
	plan func(*tx) (reply, error)
	done chan struct{} // closed when the rest is set

	reply  reply
	result any
	err    error
}

// reply makes the reply after the commit has been merged. It runs in the writer, before the
// next plan. rev is the revision of the commit.
type reply func(rev int64) any

// submit passes a plan to the writer and waits for its outcome. Small, frequent plans share
// transactions; solo ones do not. If ctx ends first the caller does not know the outcome.
func submit[R any](ctx context.Context, w *writer, solo bool, plan func(*tx) (reply, error)) (R, error) {
	var none R
	r := &request{ctx: ctx, solo: solo, plan: plan, done: make(chan struct{})}
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return none, errs.New(errs.Unavailable, "netmaster is busy or the store is unavailable; nothing was changed; retry later: %w", context.Cause(ctx))
	case <-w.stopped:
		return none, errNotLeader()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return none, errs.New(errs.Timeout, "the store did not answer in time; the change may still happen; retry later: %w", context.Cause(ctx))
	case <-w.stopped:
		select {
		case <-r.done:
		default:
			return none, errNotLeader()
		}
	}
	if r.err != nil {
		return none, r.err
	}
	return r.result.(R), nil
}

func errNotLeader() error {
	return errs.New(errs.Unavailable, "not the leader any more, retry the request")
}

// run serves the queue until ctx, the term's, ends or the term is given up.
func (w *writer) run(ctx context.Context) {
	defer close(w.stopped)
	var next *request
	for {
		if next == nil {
			select {
			case <-ctx.Done():
				return
			case next = <-w.queue:
			}
		}
		var batch []*request
		batch, next = w.collect(next)
		for len(batch) > 0 {
			n, err := w.attempt(ctx, batch)
			if err != nil {
				w.log.WithError(err).Warn("no longer writing to the store")
				return
			}
			batch = batch[n:]
		}
	}
}

// collect adds to first the queued requests that may share its transaction. next is a
// request that was taken from the queue but may not.
func (w *writer) collect(first *request) (batch []*request, next *request) {
	batch = []*request{first}
	for !first.solo && len(batch) < queueLength {
		select {
		case r := <-w.queue:
			if r.solo {
				return batch, r
			}
			batch = append(batch, r)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// attempt plans as many requests of the batch as one transaction holds, at least one,
// commits and answers them, and returns their number. An error means that the term is over;
// the requests have been answered.
func (w *writer) attempt(ctx context.Context, batch []*request) (int, error) {
	x := &tx{model: w.model}
	n := 0
	for _, r := range batch {
		mark := x.mark()
		r.reply, r.err = w.plan(x, r)
		if r.err != nil {
			x.rollback(mark)
		} else if n > 0 && x.size() > w.commits.room() {
			x.rollback(mark)
			break
		}
		n++
	}
	batch = batch[:n]
	began := time.Now()
	rev, err := w.commits.commit(ctx, x)
	w.metrics.count(n, time.Since(began), err)
	if err == nil {
		x.merge(rev)
		for _, r := range batch {
			if r.err == nil {
				r.result = r.reply(rev)
			}
			close(r.done)
		}
		return n, nil
	}
	x.rollback(0)
	if n > 1 && !w.commits.over(err) {
		// One of them is the cause; the others must not fail with it.
		for i := range batch {
			if _, err := w.attempt(ctx, batch[i:i+1]); err != nil {
				fail(batch[i+1:], errNotLeader())
				return n, err
			}
		}
		return n, nil
	}
	// Even the errors of failed plans may depend on plans that are now void.
	fail(batch, err)
	if w.commits.over(err) {
		return n, err
	}
	return n, nil
}

func fail(batch []*request, err error) {
	for _, r := range batch {
		r.err = err
		close(r.done)
	}
}

// plan runs one plan. A plan that panics has hit a bug of ours: only this request fails,
// not the daemon.
func (w *writer) plan(x *tx, r *request) (answer reply, err error) {
	if err := r.ctx.Err(); err != nil {
		return nil, errs.New(errs.Unavailable, "the client has disconnected: %w", err)
	}
	defer func() {
		if p := recover(); p != nil {
			w.log.WithField("stack", string(debug.Stack())).Errorf("request failed: internal error: %v", p)
			err = errs.Wrap(errs.Internal, fmt.Errorf("internal error: %v", p))
		}
	}()
	return r.plan(x)
}
