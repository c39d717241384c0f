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
	// cacheSlack is added to the duration of a revalidation.
	cacheSlack = 5 * time.Millisecond
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
// tables change. If a revalidation was under way at that time, another one follows
// immediately and takes about as long.
func (c *cache) walk(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cacheWithin)
	defer cancel()
	c.mu.Lock()
	socket := c.socket
	c.mu.Unlock()
	show, err := appctl.Call(ctx, socket, "upcall/show")
	if err != nil {
		if socket, err = appctl.Find(ctx, c.dir, "ovs-vswitchd"); err != nil {
			return err
		}
		c.mu.Lock()
		c.socket = socket
		c.mu.Unlock()
		if show, err = appctl.Call(ctx, socket, "upcall/show"); err != nil {
			return err
		}
	}
	if _, err := appctl.Call(ctx, socket, "revalidator/wait"); err != nil {
		return err
	}
	second := cacheSlack
	for _, m := range dumpDuration.FindAllStringSubmatch(show, -1) {
		ms, _ := strconv.Atoi(m[1]) // digits only
		second = max(second, cacheSlack+2*time.Duration(ms)*time.Millisecond)
	}
	ctx, over := context.WithTimeout(ctx, second)
	defer over()
	if _, err := appctl.Call(ctx, socket, "revalidator/wait"); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
