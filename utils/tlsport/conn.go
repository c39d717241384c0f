package tlsport

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"sync"
)

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	listener *Listener
	source   string
	first    []byte        // read already, to be read again
	tls      *tls.Conn     // after its handshake; nil: plain
	place    *list.Element // in the listener's pending; nil: its handshake is done
	closed   sync.Once
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Do(func() { c.listener.release(c) })
	return c.Conn.Close()
}

var (
	errFull       = errors.New("too many connections are open")
	errFullSource = errors.New("too many connections are open from this address")
)

// admit counts a connection, or says why it is one too many.
func (t *Listener) admit(c *conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sources[c.source] >= t.cfg.MaxSource && !t.evict(c.source) {
		return errFullSource
	}
	if len(t.open) >= t.cfg.Max && !t.evict("") {
		return errFull
	}
	t.open[c] = struct{}{}
	t.sources[c.source]++
	c.place = t.pending.PushBack(c)
	return nil
}

// evict makes room by closing the oldest connection, of a source or of any (""), whose
// handshake is not done.
func (t *Listener) evict(source string) bool {
	for e := t.pending.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); source == "" || c.source == source {
			t.forget(c)
			c.Conn.Close() // who waits for its handshake finds out
			return true
		}
	}
	return false
}

func (t *Listener) release(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(c)
}

// forget does not count a connection any more.
func (t *Listener) forget(c *conn) {
	if _, counted := t.open[c]; !counted {
		return
	}
	t.settle(c)
	delete(t.open, c)
	if t.sources[c.source]--; t.sources[c.source] == 0 {
		delete(t.sources, c.source)
	}
}

// settle notes that a connection's handshake is done, or never will be.
func (t *Listener) settle(c *conn) {
	if c.place != nil {
		t.pending.Remove(c.place)
		c.place = nil
	}
}

// watchRevocations closes the connections of peers that do not count any more. A root that
// is added does no harm to any; nor does a new certificate of this process.
func (t *Listener) watchRevocations() {
	for {
		changed := t.cfg.Credentials.Changed()
		for _, c := range t.secured() {
			chain := c.tls.ConnectionState().PeerCertificates
			if len(chain) == 0 {
				continue
			}
			if _, err := t.cfg.Credentials.Verify(chain); err != nil {
				t.refuse(c.Conn, err)
				c.Close()
			}
		}
		select {
		case <-changed:
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *Listener) secured() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*conn
	for c := range t.open {
		if c.tls != nil {
			all = append(all, c)
		}
	}
	return all
}
