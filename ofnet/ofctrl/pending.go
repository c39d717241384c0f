package ofctrl

import (
	"context"
	"sync"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// call is a request, or several, that waits for replies.
type call struct {
	first, n uint32 // its transaction ids

	mu      sync.Mutex
	replies []reply
	err     error         // of the connection
	wake    chan struct{} // has an element when there is something new
}

type reply struct {
	index uint32 // index in the call of the message that it answers
	msg   of.Message
	bad   error // instead of msg: it could not be parsed
}

func (c *call) put(r reply) {
	c.mu.Lock()
	c.replies = append(c.replies, r)
	c.mu.Unlock()
	c.signal()
}

func (c *call) fail(err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.signal()
}

func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next waits for replies and returns all that have arrived. Replies that arrived before the
// connection failed are returned before its error.
func (c *call) next(ctx context.Context) ([]reply, error) {
	for {
		c.mu.Lock()
		all, err := c.replies, c.err
		c.replies = nil
		c.mu.Unlock()
		if len(all) > 0 {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return nil, errs.New(errs.KindOf(ctx.Err()), "wait for the OpenFlow switch: %w", ctx.Err())
		}
	}
}

// pending is the set of waiting calls. There are only as many as goroutines that use the
// connection, so a list is enough.
type pending struct {
	mu    sync.Mutex
	calls []*call
	err   error // the connection has failed
}

// add registers a call with n transaction ids from first.
func (p *pending) add(first, n uint32) *call {
	c := &call{first: first, n: n, wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		c.fail(p.err)
	}
	p.calls = append(p.calls, c)
	return c
}

func (p *pending) remove(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.calls {
		if p.calls[i] == c {
			last := len(p.calls) - 1
			p.calls[i], p.calls[last] = p.calls[last], nil
			p.calls = p.calls[:last]
			return
		}
	}
}

func (p *pending) find(xid uint32) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if xid-c.first < c.n {
			return c
		}
	}
	return nil
}

// deliver passes a reply to the call with its transaction id, if there is one.
func (p *pending) deliver(h of.Header, m of.Message) bool {
	c := p.find(h.XID)
	if c != nil {
		c.put(reply{index: h.XID - c.first, msg: m})
	}
	return c != nil
}

// fail tells the call with a transaction id that its reply could not be parsed.
func (p *pending) fail(xid uint32, err error) bool {
	c := p.find(xid)
	if c != nil {
		c.put(reply{index: xid - c.first, bad: err})
	}
	return c != nil
}

// failAll ends all present and future calls.
func (p *pending) failAll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for _, c := range p.calls {
		c.fail(err)
	}
}
