package signal

import (
	"sync"
	"sync/atomic"
	"testing"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestEveryWaiterIsWoken(t *testing.T) {
	var s Signal
	s.Broadcast() // nobody waits
	first, second := s.Next(), s.Next()
	if isClosed(first) || isClosed(second) {
		t.Fatal("woken by an earlier broadcast")
	}
	s.Broadcast()
	if !isClosed(first) || !isClosed(second) {
		t.Fatal("a waiter was not woken")
	}
	third := s.Next()
	if isClosed(third) {
		t.Fatal("woken by a broadcast before it waited")
	}
	s.Broadcast()
	if !isClosed(third) {
		t.Fatal("the second broadcast woke nobody")
	}
}

// Nobody misses the last change, whatever comes between looking and waiting.
func TestNoChangeIsMissed(t *testing.T) {
	const changes, waiters = 1000, 4
	var s Signal
	var value atomic.Int64
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			for {
				changed := s.Next()
				if value.Load() == changes {
					return
				}
				<-changed
			}
		})
	}
	for range changes {
		value.Add(1)
		s.Broadcast()
	}
	all.Wait()
}

func TestBroadcastWithoutWaitersAllocatesNothing(t *testing.T) {
	var s Signal
	if n := testing.AllocsPerRun(100, s.Broadcast); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
