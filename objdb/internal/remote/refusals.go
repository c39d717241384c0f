package remote

import "sync"

// Refusals are the watches that the store does not let read at present, and why. Such a watch
// delivers nothing, for what may not be seen must not look as if it had been deleted; who
// relies on it learns of it here. The zero value is ready.
type Refusals struct {
	mu   sync.Mutex
	list map[any]error
}

// Note says how the last try of a watch ended: nil, it reads.
func (r *Refusals) Note(watch any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.list, watch)
		return
	}
	if r.list == nil {
		r.list = map[any]error{}
	}
	r.list[watch] = err
}

// Err returns why one of the watches may not read; nil: all may.
func (r *Refusals) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.list {
		return err
	}
	return nil
}
