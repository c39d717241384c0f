package daemon

import (
	"context"
	"sync"
)

// gate counts the requests that the Controller is serving, and lets no more in once it
// is shut.
type gate struct {
	mu    sync.Mutex
	n     int
	shut  bool
	empty chan struct{} // closed when shut and n is 0
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter returns false when the gate is shut; otherwise leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.n++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.shut && g.n == 0 {
		close(g.empty)
	}
}

// close shuts the gate and waits until all have left. It returns false when ctx ended
// before that.
func (g *gate) close(ctx context.Context) bool {
	g.mu.Lock()
	if !g.shut {
		g.shut = true
		if g.n == 0 {
			close(g.empty)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
		return true
	case <-ctx.Done():
		return false
	}
}
