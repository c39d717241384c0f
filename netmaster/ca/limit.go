package ca

import (
	"sync"

	"golang.org/x/time/rate"

	"github.com/contiv/netplugin/utils/netx"
)

// How often an address may ask for a certificate: so often that many hosts behind one
// address can join, and so seldom that it costs no netmaster much.
const (
	askRate    = 20 // a second
	askBurst   = 100
	maxSources = 4096
)

// limiter bounds how often addresses ask. Secrets are too long to be guessed; it is the
// work that is bounded.
type limiter struct {
	mu      sync.Mutex
	sources map[string]*rate.Limiter
}

func newLimiter() *limiter { return &limiter{sources: map[string]*rate.Limiter{}} }

func (l *limiter) allow(remote string) bool {
	host := netx.HostOf(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	source, ok := l.sources[host]
	if !ok {
		if len(l.sources) >= maxSources {
			clear(l.sources)
		}
		source = rate.NewLimiter(askRate, askBurst)
		l.sources[host] = source
	}
	return source.Allow()
}
