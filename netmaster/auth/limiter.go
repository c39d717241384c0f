package auth

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// How failures count. They are forgotten after forgetAfter without one.
const (
	freeFailures  = 10 // until then nobody waits
	firstWait     = 2 * time.Second
	longestWait   = 15 * time.Minute
	forgetAfter   = 30 * time.Minute
	maxLimiterSet = 4096 // accounts and sources that are remembered
)

// limiter makes an account and a source wait after failures, longer after each one. It
// remembers those that failed last, a bounded number. An attempt counts as a failure until
// it has succeeded, so that attempts at the same time do not get around it.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*list.Element // of *failures
	order   *list.List               // the one used last is in front
}

type failures struct {
	name  string
	count int
	until time.Time // no attempt before
	last  time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, entries: map[string]*list.Element{}, order: list.New()}
}

// begin charges an attempt to all names, or refuses it with how long to wait. If the attempt
// succeeds, or fails for another reason than its secret, the caller takes it back.
func (l *limiter) begin(names ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, name := range names {
		if e, ok := l.entries[name]; ok {
			if f := failuresOf(e); now.Before(f.until) {
				return &Error{Code: http.StatusTooManyRequests, Wait: f.until.Sub(now), Text: "too many failed logins: wait " + f.until.Sub(now).Round(time.Second).String()}
			}
		}
	}
	for _, name := range names {
		f := l.entry(name, now)
		f.count++
		f.last = now
		if f.count >= freeFailures {
			f.until = now.Add(waitAfter(f.count))
		}
	}
	return nil
}

// takeBack undoes one begin.
func (l *limiter) takeBack(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		e, ok := l.entries[name]
		if !ok {
			continue
		}
		f := failuresOf(e)
		f.until = time.Time{} // it had passed, or there would not have been an attempt
		if f.count--; f.count <= 0 {
			l.remove(e)
		}
	}
}

// forget removes what is known of a name.
func (l *limiter) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[name]; ok {
		l.remove(e)
	}
}

// size is how many names are remembered.
func (l *limiter) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// entry finds a name, in front of the others, or makes it, and drops the one that has not
// been used for longest.
func (l *limiter) entry(name string, now time.Time) *failures {
	if e, ok := l.entries[name]; ok {
		l.order.MoveToFront(e)
		f := failuresOf(e)
		if now.Sub(f.last) > forgetAfter {
			f.count = 0
		}
		return f
	}
	if len(l.entries) >= maxLimiterSet {
		l.remove(l.order.Back())
	}
	f := &failures{name: name}
	l.entries[name] = l.order.PushFront(f)
	return f
}

func (l *limiter) remove(e *list.Element) {
	delete(l.entries, failuresOf(e).name)
	l.order.Remove(e)
}

func failuresOf(e *list.Element) *failures {
	f, _ := e.Value.(*failures)
	return f
}

// waitAfter doubles with every failure after the free ones.
func waitAfter(count int) time.Duration {
	over := count - freeFailures
	if over > 10 {
		return longestWait
	}
	return min(firstWait<<over, longestWait)
}
