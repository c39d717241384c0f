package daemon

import (
	"net/http"
	"sync"

	"github.com/contiv/netplugin/utils/signal"
)

// view is who leads, as this process knows it.
type view struct {
	leader     string       // internal address of the lock's holder; empty: nobody
	term       int64        // revision of the lock's creation; 0: nobody holds it, or it is not known
	leading    bool         // this process holds the lock
	controller http.Handler // set while this process leads and can serve
	stopping   bool         // the daemon is on its way out
	waiting    string       // what a follower or leader still waits for; empty: nothing

	changed <-chan struct{} // closed when the view is out of date
}

// leaderState holds the current view. Whoever needs another one waits for its changed.
type leaderState struct {
	changed signal.Signal

	mu  sync.Mutex
	now view
}

func newLeaderState() *leaderState {
	return &leaderState{now: view{waiting: "the store is not connected yet"}}
}

func (s *leaderState) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.now
	v.changed = s.changed.Next()
	return v
}

func (s *leaderState) change(f func(*view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
	s.changed.Broadcast()
}
