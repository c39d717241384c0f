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
		if id.Kind != identity.User || d.cfg.Security.Tokens == nil {
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
