// Package pace bounds how often each of many clients may do something.
package pace

import (
	"sync"

	"golang.org/x/time/rate"
)

// maxClients bounds how many clients are remembered; then all begin again.
const maxClients = 4096

// Limiter has one bucket of tokens for each client. Safe for concurrent use.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	clients map[string]*rate.Limiter
}

// New returns a Limiter that lets each client do something so often per second, and burst
// times at once.
func New(perSecond, burst int) *Limiter {
	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, clients: map[string]*rate.Limiter{}}
}

// Allow reports whether a client may do it now.
func (l *Limiter) Allow(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.clients[client]
	if !ok {
		if len(l.clients) >= maxClients {
			clear(l.clients)
		}
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.clients[client] = bucket
	}
	return bucket.Allow()
}
