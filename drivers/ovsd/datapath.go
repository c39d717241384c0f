package ovsd

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/contiv/netplugin/ofnet/appctl"
)

// A committed bundle and an answered barrier say that OpenFlow's tables have changed.
// Packets meet the datapath's flow cache first: an entry for an address that did not exist
// a moment ago says drop until a revalidator has checked it. On a busy machine this takes
// long enough to lose the first reply to a new container.

const (
	// cacheWithin limits the wait, as containers should not wait long for the cache.
	cacheWithin = 2 * time.Second
	// revalidatorGap is the least time between the starts of two revalidations: the
	// switch waits that long so as not to do nothing else (ofproto-dpif-upcall.c).
	revalidatorGap = 5 * time.Millisecond
	// prompt is how soon a switch answers that gets the processor when it needs it.
	prompt = 250 * time.Microsecond
)

// cache waits until the datapath's cache agrees with the tables. Use newCache.
type cache struct {
	dir  string        // directory of the control sockets
	turn chan struct{} // holds one token while somebody is waiting for the switch

	mu           sync.Mutex
	socket       string // the one that answered last
	begun, ended int    // revalidations
}

func newCache(dir string) *cache { return &cache{dir: dir, turn: make(chan struct{}, 1)} }

// current returns when every entry of the cache agrees with the tables as they were at the
// time of the call or later, or when cacheWithin is over. Concurrent callers share one
// request to the switch. The error says why the switch could not be asked.
func (c *cache) current(ctx context.Context) error {
	c.mu.Lock()
	want := c.begun + 1 // the one under way may already have passed the entries that matter
	c.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	c.mu.Lock()
	done := c.ended >= want
	if !done {
		c.begun++
	}
	c.mu.Unlock()
	if done {
		return nil
	}
	err := c.walk(ctx)
	c.mu.Lock()
	c.ended = c.begun
	c.mu.Unlock()
	return err
}

var dumpDuration = regexp.MustCompile(`dump duration\s*:\s*(\d+)ms`)

// walk waits until the revalidators have checked the whole cache. They start as soon as
// tables change, but no sooner than revalidatorGap after their last start. The switch only
// tells when a revalidation ends, so which one that was follows from the time it takes:
// the one that counts may be over before the switch is asked, or another one may be under way
// that has already passed the entries that matter.
func (c *cache) walk(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cacheWithin)
	defer cancel()
	duration, answered, err := c.duration(ctx)
	if err != nil {
		return err
	}
	slack := 4 * max(prompt, answered) // its other threads get the processor as late
	ended, took, err := c.revalidated(ctx, duration, slack)
	if err == nil && ended && took < duration+slack {
		_, _, err = c.revalidated(ctx, duration, slack)
	}
	return err
}

// revalidated waits for the end of a revalidation, for as long as one that was requested
// before needs. ended is false if none ended in this time: then it was over before. On a
// machine that has become too busy to tell, it waits for the next one.
func (c *cache) revalidated(ctx context.Context, duration, slack time.Duration) (ended bool, took time.Duration, err error) {
	enough := revalidatorGap + 2*duration + slack
	began := time.Now()
	answer := make(chan error, 1)
	go func() {
		_, err := appctl.Call(ctx, c.lastSocket(), "revalidator/wait")
		answer <- err
	}()
	select {
	case err := <-answer:
		return true, time.Since(began), err
	case <-time.After(enough):
	}
	if _, answered, err := c.duration(ctx); err != nil || answered < enough {
		return false, time.Since(began), err
	}
	return true, time.Since(began), <-answer
}

// duration asks how long the last revalidation took, at least a millisecond. answered is how
// long the switch took to say so.
func (c *cache) duration(ctx context.Context) (duration, answered time.Duration, err error) {
	began := time.Now()
	show, err := appctl.Call(ctx, c.lastSocket(), "upcall/show")
	if err != nil {
		socket, err := appctl.Find(ctx, c.dir, "ovs-vswitchd")
		if err != nil {
			return 0, 0, err
		}
		c.mu.Lock()
		c.socket = socket
		c.mu.Unlock()
		began = time.Now()
		if show, err = appctl.Call(ctx, socket, "upcall/show"); err != nil {
			return 0, 0, err
		}
	}
	answered = time.Since(began)
	for _, m := range dumpDuration.FindAllStringSubmatch(show, -1) {
		ms, _ := strconv.Atoi(m[1]) // digits only
		duration = max(duration, time.Duration(ms)*time.Millisecond)
	}
	return duration, answered, nil
}

func (c *cache) lastSocket() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}
