// Package signal wakes everybody who waits for a change of something.
//
// Who changes something calls Broadcast afterwards. Who waits takes the channel of Next
// first, looks at what it waits for, and then waits for the channel: so no change between
// looking and waiting is missed.
package signal

import "sync"

// Signal is a broadcast that can be repeated. The zero value is ready. It is safe for
// concurrent use, and costs nothing while nobody waits.
type Signal struct {
	mu   sync.Mutex
	next chan struct{} // nil: nobody has asked since the last broadcast
}

// Next returns a channel that the next Broadcast closes.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Broadcast wakes everybody who has called Next since the last Broadcast.
func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
