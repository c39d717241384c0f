package daemon

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/contiv/netplugin/state/identity"
)

// identifyAgain is how often it is looked whether the client of an answer that stays open
// still has its token and its roles: a token that expires changes nothing that would tell.
const identifyAgain = 30 * time.Second

// whileTheSame ends answers that stay open when their client has lost its token, or has other
// roles than at the beginning. A client that comes back gets what it may see then.
func (d *Daemon) whileTheSame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identity.From(r.Context())
		if id.Kind != identity.User || d.cfg.Security.Tokens == nil || fromMaster(r) { // which does this by itself
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			defer cancel()
			d.untilOther(ctx, r, id)
		})
		next.ServeHTTP(w, r.WithContext(ctx))
		cancel()
		watching.Wait()
	})
}

// untilOther returns when the token of a request gives another identity than it gave, or ctx
// ends.
func (d *Daemon) untilOther(ctx context.Context, r *http.Request, id identity.Identity) {
	tick := time.NewTicker(identifyAgain)
	defer tick.Stop()
	for {
		changed := d.cfg.Security.Tokens.Changed()
		now, found, err := d.cfg.Security.Tokens.Authenticate(r)
		if !found || err != nil || now.Name != id.Name || !slices.Equal(now.Grants, id.Grants) {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// readWithin is how long a client may take to read what it is sent.
const readWithin = 30 * time.Second

// unlimited serves answers that stay open, for as long as the client reads them and this
// netmaster runs: the server's limits are made for requests that end.
func (d *Daemon) unlimited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			defer cancel()
			d.untilStopping(ctx)
		})
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Time{}) // a test's recorder has none
		next.ServeHTTP(&patient{w, rc}, r.WithContext(ctx))
		cancel()
		watching.Wait()
	})
}

// untilStopping returns when this netmaster stops, or ctx ends.
func (d *Daemon) untilStopping(ctx context.Context) {
	for {
		v := d.state.view()
		if v.stopping {
			return
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return
		}
	}
}

// patient gives a client its time for each part of an answer, instead of for the whole.
type patient struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Write implements http.ResponseWriter.
func (p *patient) Write(part []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(readWithin)) // a test's recorder has none
	return p.ResponseWriter.Write(part)
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
