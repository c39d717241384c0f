package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/retry"
)

// A leader that is killed leaves its lock to the lease. The lease is slow to end: the
// store counts it again when its own leader was on the same host, and Consul doubles it.
// But the kernel of a host on which the process has gone says so at once: it closes the
// connections, and refuses new ones. So every follower keeps a connection to the leader,
// and when that breaks and new ones are refused, it ends the term.
//
// This proof can be wrong only in a network that answers in the host's name, and it
// costs no more than a change of leader then: the old one learns that its key has gone,
// and its writes fail at the fence. It does not repeat itself, either: a follower that
// has never had a connection to the leader has nothing that could break.
const (
	alivePath   = "/alive"
	refusals    = 3                      // connections in a row that must be refused
	refusalGap  = 50 * time.Millisecond  // between them
	listenAgain = 200 * time.Millisecond // after a connection that broke or did not come about
	endWithin   = 500 * time.Millisecond // one try to end the term; the store may have lost its leader, too
	endAgain    = 100 * time.Millisecond
)

// serveAlive answers and keeps the answer open as long as this process serves.
func (d *Daemon) serveAlive(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil {
		http.Error(w, "this connection cannot stay open: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	if rc.Flush() != nil {
		return // the client has gone
	}
	for {
		v := d.state.view()
		if v.stopping {
			return
		}
		select {
		case <-v.changed:
		case <-r.Context().Done():
			return
		}
	}
}

// watchOver ends the term of any other leader whose process is seen to have gone.
func (d *Daemon) watchOver(ctx context.Context, store objdb.Store) {
	dialer := &net.Dialer{Timeout: time.Second}
	client := &http.Client{Transport: &http.Transport{DialContext: d.dialer(time.Second, 0).DialContext, DisableKeepAlives: true, ResponseHeaderTimeout: 5 * time.Second}}
	for ctx.Err() == nil {
		v := d.state.view()
		if v.leader == "" || v.leader == d.cfg.Address || v.term == 0 {
			select {
			case <-v.changed:
			case <-ctx.Done():
			}
			continue
		}
		term, over := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			defer over()
			d.outlast(term, v.term)
		})
		for heard := false; term.Err() == nil; {
			// The kernel may close what is open before it closes what listens, so that the
			// first new connection comes about.
			heard = hear(term, client, v.leader) || heard
			if heard && term.Err() == nil && refuses(term, dialer, v.leader) {
				d.log.WithField("leader", v.leader).Warn("the leader's process is down: removing its lock")
				endTerm(term, store, v.term)
				<-term.Done() // known to be over as soon as the lock's watch says so
			}
			retry.Pause(term, listenAgain)
		}
		over()
		watching.Wait()
	}
}

// outlast returns when a term is known to be over, or ctx ends.
func (d *Daemon) outlast(ctx context.Context, term int64) {
	for {
		v := d.state.view()
		if v.term != term {
			return
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return
		}
	}
}

// hear holds a connection to the leader until it breaks or ctx ends, and reports whether
// there was one.
func hear(ctx context.Context, client *http.Client, leader string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+leader+alivePath, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body) // how it ends says nothing
	return true
}

// refuses reports whether the leader's host refuses connections to it: nobody listens.
func refuses(ctx context.Context, dialer *net.Dialer, leader string) bool {
	for i := range refusals {
		if i > 0 && !retry.Pause(ctx, refusalGap) {
			return false
		}
		conn, err := dialer.DialContext(ctx, "tcp", leader)
		if err == nil {
			conn.Close()
			return false
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return false
		}
	}
	return true
}

// endTerm removes the lock of a term, trying until it has gone or ctx ends.
func endTerm(ctx context.Context, store objdb.Store, term int64) {
	for {
		try, cancel := context.WithTimeout(ctx, endWithin)
		err := objdb.EndTerm(try, store, state.LeaderKey, term)
		cancel()
		if err == nil || !retry.Pause(ctx, endAgain) {
			return
		}
	}
}
