package ovsd

import (
	"context"
	"sync"
	"time"

	"github.com/contiv/netplugin/ofnet/appctl"
)

// A committed bundle and an answered barrier say that OpenFlow's tables have changed.
// Packets meet the datapath's flow cache first: an entry for an address that did not exist
// a moment ago says drop until a revalidator has checked it. On a busy machine this takes
// long enough to lose the first reply to a new container.

// cacheWithin limits the wait, as containers should not wait long for the cache.
const cacheWithin = 2 * time.Second

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
// request to the switch. bridge and port are any that the switch has. The error says why the
// switch could not be asked.
func (c *cache) current(ctx context.Context, bridge, port string) error {
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
	err := c.walk(ctx, bridge, port)
	c.mu.Lock()
	c.ended = c.begun
	c.mu.Unlock()
	return err
}

// walk waits for two revalidations of the whole cache, one after the other. The first one may
// have been under way at the time of the call, and have passed the entries that matter.
func (c *cache) walk(ctx context.Context, bridge, port string) error {
	ctx, cancel := context.WithTimeout(ctx, cacheWithin)
	defer cancel()
	for range 2 {
		if err := c.revalidated(ctx, bridge, port); err != nil {
			return err
		}
	}
	return nil
}

// nobody is a MAC address that no interface has: locally administered, of no scheme of ours.
const nobody = "06:00:00:00:00:00"

// revalidated waits for the end of a revalidation. The switch tells only of one that ends after
// it was asked, and without a change the next one may begin half a second later. So it is asked
// first, and given a change then: an entry in a table of MAC addresses, for a moment, that
// no packet meets. Revalidations begin 5 ms apart at least (ofproto-dpif-upcall.c).
func (c *cache) revalidated(ctx context.Context, bridge, port string) error {
	wait, err := c.ask(ctx)
	if err != nil {
		return err
	}
	defer wait.Close()
	socket := c.lastSocket()
	if _, err := appctl.Call(ctx, socket, "fdb/add", bridge, port, "0", nobody); err != nil {
		return err
	}
	if _, err := appctl.Call(ctx, socket, "fdb/del", bridge, "0", nobody); err != nil {
		return err
	}
	_, err = wait.Answer()
	return err
}

// ask asks the switch to tell the end of a revalidation.
func (c *cache) ask(ctx context.Context) (*appctl.Pending, error) {
	if p, err := appctl.Send(ctx, c.lastSocket(), "revalidator/wait"); err == nil {
		return p, nil
	}
	socket, err := appctl.Find(ctx, c.dir, "ovs-vswitchd")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.socket = socket
	c.mu.Unlock()
	return appctl.Send(ctx, socket, "revalidator/wait")
}

func (c *cache) lastSocket() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}
