package memory

import (
	"context"
	"sync"

	"github.com/contiv/netplugin/objdb"
)

// watcher is the queue between commits and one Watch. It is as long as its consumer
// is slow.
type watcher struct {
	prefix string
	more   chan struct{} // holds a token while queue may be non-empty

	mu    sync.Mutex
	queue []objdb.Batch
}

func (w *watcher) add(b objdb.Batch) {
	w.mu.Lock()
	w.queue = append(w.queue, b)
	w.mu.Unlock()
	w.wake()
}

// reset replaces what has not been delivered yet.
func (w *watcher) reset(snapshot objdb.Batch) {
	w.mu.Lock()
	w.queue = []objdb.Batch{snapshot}
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []objdb.Batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queue
	w.queue = nil
	return q
}

// Watch implements objdb.Store.
func (s *Store) Watch(ctx context.Context, prefix string) <-chan objdb.Batch {
	out := make(chan objdb.Batch)
	w := &watcher{prefix: prefix, more: make(chan struct{}, 1)}
	ok := s.spawn(func() {
		defer close(out)
		s.d.mu.Lock()
		s.d.watchers[w] = struct{}{}
		w.add(s.d.snapshot(prefix))
		s.d.mu.Unlock()
		defer func() {
			s.d.mu.Lock()
			delete(s.d.watchers, w)
			s.d.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.closed:
				return
			case <-w.more:
			}
			for _, b := range w.take() {
				if ctx.Err() != nil {
					return // of two ready cases select might choose the other
				}
				select {
				case out <- b:
				case <-s.closed:
					return
				case <-ctx.Done():
					return
				}
			}
		}
	})
	if !ok {
		close(out)
	}
	return out
}

// spawn runs f in a goroutine that Close waits for. It returns false, and does
// nothing, when the client is closed.
func (s *Store) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return false
	default:
		s.wg.Go(f)
		return true
	}
}
