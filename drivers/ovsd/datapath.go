package ovsd

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/contiv/netplugin/ofnet/appctl"
)

// A bundle that is committed and a barrier that is answered are about OpenFlow's tables.
// Packets meet the datapath's cache of verdicts first: one for an address that nobody had a
// moment ago says drop, also after somebody has it, until a revalidator has looked at it. That
// takes a moment, on a machine with much to do a long one, and the first answer to a new
// container was lost in it.

const (
	// cacheWithin bounds the wait: a container is not held back for long by a cache.
	cacheWithin = 2 * time.Second
	// cacheSlack is added to what a walk through the cache takes.
	cacheSlack = 5 * time.Millisecond
)

// cache waits until the datapath's cache agrees with the tables. Use newCache.
type cache struct {
	dir  string        // of the control sockets
	turn chan struct{} // holds one token while somebody waits for the switch

	mu           sync.Mutex
	socket       string // that answered last
	begun, ended int    // walks
}

func newCache(dir string) *cache { return &cache{dir: dir, turn: make(chan struct{}, 1)} }

// current returns when every verdict in the cache is one that the tables gave after the call,
// or when it has waited for long enough. Of those who call at once one asks the switch. The
// error says why the switch could not be asked.
func (c *cache) current(ctx context.Context) error {
	c.mu.Lock()
	want := c.begun + 1 // one that has begun may have passed what matters
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

// walk waits until the revalidators have been through the cache. They begin as soon as tables
// change. A walk that was under way then may have passed what matters: after it another one
// begins at once, and takes about as long; without it none does.
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
		ms, _ := strconv.Atoi(m[1]) // of digits
		second = max(second, cacheSlack+2*time.Duration(ms)*time.Millisecond)
	}
	ctx, over := context.WithTimeout(ctx, second)
	defer over()
	if _, err := appctl.Call(ctx, socket, "revalidator/wait"); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
