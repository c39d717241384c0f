package tlsport

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/contiv/netplugin/utils/httproutes"
	"github.com/contiv/netplugin/utils/netx"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// Defaults of Config.
const (
	DefaultHandshake = 10 * time.Second
	DefaultMax       = 8192
	DefaultMaxSource = 2048
)

// Config says what a Listener takes.
type Config struct {
	Mode Mode
	// TLS are the settings of the TLS side; of no use in mode off.
	TLS *tls.Config
	// Credentials, if not nil, are asked again about the peers of open connections whenever
	// they change; connections of peers that do not count any more are closed.
	Credentials *pki.Credentials
	// Handshake bounds the time from a connection to the end of its handshake; in mode
	// accept to the first byte of a plain one, too. 0 means DefaultHandshake.
	Handshake time.Duration
	// Max is how many connections may be open at once, MaxSource how many from one address;
	// 0 means DefaultMax and DefaultMaxSource. A further one takes the place of the oldest
	// whose handshake is not done, so that idle connections do not keep others out; if there
	// is none, it is closed at once.
	Max, MaxSource int
	// Plain is called with the address of every plain connection in mode accept; may be nil.
	Plain func(net.Addr)
	// Refused is called with why a connection was not taken; may be nil.
	Refused func(from net.Addr, why error)
}

// Listener gives connections that are ready: plain ones, and TLS ones after their handshake,
// as *tls.Conn. In mode require a plain HTTP client is told what is expected of it. Accept
// never waits for a client: handshakes run beside each other. The zero value is of no use.
type Listener struct {
	net.Listener
	cfg    Config
	ready  chan net.Conn
	failed chan error
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	open    map[*conn]struct{}
	pending list.List // of *conn, the oldest first: those whose handshake is not done
	sources map[string]int
}

// Listen takes the connections of a listener, which the result closes.
func Listen(l net.Listener, cfg Config) *Listener {
	if cfg.Handshake == 0 {
		cfg.Handshake = DefaultHandshake
	}
	if cfg.Max == 0 {
		cfg.Max = DefaultMax
	}
	if cfg.MaxSource == 0 {
		cfg.MaxSource = DefaultMaxSource
	}
	t := &Listener{Listener: l, cfg: cfg, ready: make(chan net.Conn), failed: make(chan error, 1), open: map[*conn]struct{}{}, sources: map[string]int{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.work.Go(t.accept)
	if cfg.Credentials != nil {
		t.work.Go(t.watchRevocations)
	}
	return t
}

// Accept implements net.Listener.
func (t *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-t.ready:
		return c, nil
	case err := <-t.failed:
		t.failed <- err
		return nil, err
	case <-t.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close stops listening and ends handshakes; connections that Accept has given stay open.
func (t *Listener) Close() error {
	t.stop()
	err := t.Listener.Close()
	t.mu.Lock()
	for e := t.pending.Front(); e != nil; e = e.Next() {
		e.Value.(*conn).Conn.Close()
	}
	t.mu.Unlock()
	t.work.Wait()
	return err
}

// accept takes connections until the listener fails or is closed.
func (t *Listener) accept() {
	pauses := retry.New(5*time.Millisecond, time.Second)
	for {
		raw, err := t.Listener.Accept()
		switch {
		case err == nil:
			pauses.Reset()
			t.take(raw)
			continue
		case t.ctx.Err() != nil:
			return
		case !temporary(err):
			t.failed <- err
			return
		}
		// Out of file descriptors, most likely: those that end give some back.
		if !pauses.Wait(t.ctx) {
			return
		}
	}
}

func temporary(err error) bool {
	var ne interface{ Temporary() bool }
	return errors.As(err, &ne) && ne.Temporary()
}

// take admits a connection and has it made ready.
func (t *Listener) take(raw net.Conn) {
	c := &conn{Conn: raw, listener: t, source: netx.HostOf(raw.RemoteAddr().String())}
	if why := t.admit(c); why != nil {
		t.refuse(raw, why)
		raw.Close()
		return
	}
	if t.cfg.Mode == Off {
		t.work.Go(func() { t.give(c, c) })
		return
	}
	t.work.Go(func() {
		ready, err := t.shake(c)
		if err != nil {
			t.refuse(raw, err)
			c.Close()
			return
		}
		t.give(c, ready)
	})
}

// give hands a connection to Accept.
func (t *Listener) give(c *conn, ready net.Conn) {
	t.mu.Lock()
	t.settle(c)
	t.mu.Unlock()
	select {
	case t.ready <- ready:
	case <-t.ctx.Done():
		ready.Close()
	}
}

// errPlain is why a plain client is refused where only TLS is served.
var errPlain = errors.New("the client does not speak TLS")

// plainAnswer is what a plain HTTP client gets where only TLS is served.
const plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n" + httproutes.RefusedHeader + ": true\r\nConnection: close\r\n\r\n" +
	"this port serves TLS only: use https:// (--tls require is set)\n"

const recordHandshake = 22 // the first byte of a TLS connection, RFC 8446 §5.1

// shake makes a connection ready: by its first byte it is plain or TLS.
func (t *Listener) shake(c *conn) (net.Conn, error) {
	deadline := time.Now().Add(t.cfg.Handshake)
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	var first [1]byte
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return nil, err
	}
	c.first = first[:]
	if first[0] == recordHandshake {
		return t.secure(c, deadline)
	}
	if t.cfg.Mode == Require {
		turnAway(c.Conn)
		return nil, errPlain
	}
	if t.cfg.Plain != nil {
		t.cfg.Plain(c.RemoteAddr())
	}
	return c, c.SetDeadline(time.Time{})
}

// turnAway tells a plain client what is expected. What it sends is read first: a connection
// that is closed with unread bytes is reset, and the answer lost.
func turnAway(c net.Conn) {
	if _, err := io.WriteString(c, plainAnswer); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.CopyN(io.Discard, c, 64<<10)
	}
}

func (t *Listener) secure(c *conn, deadline time.Time) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(t.ctx, deadline)
	defer cancel()
	s := tls.Server(c, t.cfg.TLS)
	if err := s.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	c.tls = s
	t.mu.Unlock()
	return s, c.SetDeadline(time.Time{})
}

func (t *Listener) refuse(raw net.Conn, why error) {
	if t.cfg.Refused != nil && t.ctx.Err() == nil {
		t.cfg.Refused(raw.RemoteAddr(), why)
	}
}
