package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/utils/errs"
)

// debt is a removal that was answered on the agent's behalf.
type debt struct {
	path string
	body []byte
}

// maxOwed limits how many are kept; the agent finds the rest by itself.
const maxOwed = 10_000

// errGivenUp is unreachable: there is nobody to call.
var errGivenUp = errUnreachable{errors.New("the agent has been unreachable for too long")}

// believed returns nil when the agent may be called. It waits while an agent that is back
// is sent the removals.
func (r *Relay) believed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limit)
	defer cancel()
	for {
		r.mu.Lock()
		gone, hangs, back := r.gone, r.hangs, r.back
		r.mu.Unlock()
		switch {
		case !gone:
			return nil
		case back == nil && (hangs || !r.listens(ctx)):
			return errGivenUp
		}
		tick := time.NewTimer(again) // Run will notice, too
		select {
		case <-back:
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return errGivenUp
		}
		tick.Stop()
	}
}

// listens reports whether somebody listens on the agent's socket.
func (r *Relay) listens(ctx context.Context) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", r.cfg.Agent)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// there records that the agent has answered.
func (r *Relay) there() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed, r.gone = time.Time{}, false
}

// giveUp records that the agent has been unreachable for too long, or hangs: it has not
// answered a call.
func (r *Relay) giveUp(hangs bool) {
	r.mu.Lock()
	r.gone, r.hangs = true, hangs
	r.mu.Unlock()
	r.wake()
}

// wake has Run check the agent.
func (r *Relay) wake() {
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// unreachableFor records that the agent is unreachable, and returns for how long it has
// been.
func (r *Relay) unreachableFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed.IsZero() {
		r.missed = time.Now()
	}
	return time.Since(r.missed)
}

// owe keeps a removal for the agent, unless it means nothing to it.
func (r *Relay) owe(path string, body []byte) {
	switch path {
	case "/" + cnm.NetworkDriver + ".Leave", "/" + cnm.NetworkDriver + ".RevokeExternalConnectivity", "/" + cnm.IpamDriver + ".ReleasePool":
		return
	}
	r.mu.Lock()
	if len(r.owed) < maxOwed {
		r.owed = append(r.owed, debt{path, body})
	}
	r.mu.Unlock()
	r.cfg.Log.WithField("call", path).Info("the agent is unreachable; queued a removal until it is back")
	r.wake()
}

// Run waits for agents that were given up, sends them the removals, and has them called
// again, until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.lost:
		}
		if err := r.await(ctx); err != nil {
			return err
		}
	}
}

// await waits until the agent is back and has been sent everything.
func (r *Relay) await(ctx context.Context) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		_, _, err := r.once(ctx, http.MethodPost, cnm.PathActivate, nil)
		if err == nil && r.pay(ctx) {
			return nil
		}
		r.mu.Lock()
		r.hangs = errs.Is(err, errs.Timeout)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// pay sends the removals to an agent that is back, and reports whether it got all.
func (r *Relay) pay(ctx context.Context) bool {
	back := make(chan struct{})
	r.mu.Lock()
	r.back = back
	r.mu.Unlock()
	defer close(back)
	for {
		r.mu.Lock()
		if len(r.owed) == 0 {
			r.missed, r.gone, r.back = time.Time{}, false, nil
			r.mu.Unlock()
			r.cfg.Log.Info("the agent is reachable again")
			return true
		}
		next := r.owed[0]
		r.mu.Unlock()
		_, _, err := r.once(ctx, http.MethodPost, next.path, next.body)
		r.mu.Lock()
		if err != nil && !errs.Is(err, errs.Invalid) {
			r.back = nil
			r.mu.Unlock()
			return false
		}
		r.owed = r.owed[1:] // delivered, whatever the answer
		r.mu.Unlock()
	}
}
