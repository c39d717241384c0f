package relay

import (
	"net"
	"testing"
	"time"
)

func listenUnix(t *testing.T, socket string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(t.Context(), "unix", socket)
}

// givenUp says whether the agent is.
func (r *Relay) givenUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// unreachableSince is since when the agent is unreachable.
func (r *Relay) unreachableSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed
}
