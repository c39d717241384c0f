package ofctrl

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// ErrClosed is the error of a connection that was ended by Close.
var ErrClosed = errors.New("OpenFlow connection closed")

// Conn is a connection to one switch. Its methods may be called from any goroutine.
type Conn struct {
	cfg      Config
	features of.FeaturesReply

	w       writer
	pending pending
	events  eventQueue
	bundles atomic.Uint32

	lastRead atomic.Int64     // when the last message arrived, UnixNano
	echoes   chan echoRequest // echo requests of the switch, to be answered
	stats    counters
	nc       net.Conn
	failOnce sync.Once
	done     chan struct{}
	err      error          // why it has ended; set before done is closed
	running  sync.WaitGroup // the goroutines of this connection
}

type echoRequest struct {
	xid  uint32
	data []byte
}

// Dial connects to a switch and negotiates OpenFlow 1.3, within ctx and 5 s. The error's
// kind is Invalid for a bad target or a switch that does not speak OpenFlow 1.3,
// Unavailable or Timeout for one that cannot be reached.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	nc, err := cfg.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		cfg: cfg, nc: nc,
		echoes: make(chan echoRequest, 16),
		done:   make(chan struct{}),
	}
	c.w.init(nc, cfg.EchoTimeout)
	c.events.init()
	r := &messageReader{r: bufio.NewReaderSize(nc, 1<<16)}
	// A cancelled context must end reads that are under way.
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) }) // only fails on a closed connection
	err = c.handshake(r)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		if ctx.Err() != nil {
			err = errs.New(errs.KindOf(ctx.Err()), "no OpenFlow handshake: %w", ctx.Err())
		}
		return nil, errs.New(handshakeKind(err), "connect to OpenFlow switch %s: %w", cfg.Target, err)
	}
	c.start(r)
	return c, nil
}

// start runs the goroutines of the connection.
func (c *Conn) start(r *messageReader) {
	c.lastRead.Store(time.Now().UnixNano())
	for _, f := range []func(){
		func() { c.fail(c.readLoop(r)) },
		func() { c.fail(c.keepAlive()) },
		c.dispatch,
	} {
		c.running.Add(1)
		go func() {
			defer c.running.Done()
			f()
		}()
	}
	c.cfg.Log.WithField("datapath", c.DatapathID()).Debug("OpenFlow connection established")
}

// DatapathID identifies the switch.
func (c *Conn) DatapathID() uint64 { return c.features.DatapathID }

// Features is what the switch reported when it connected.
func (c *Conn) Features() of.FeaturesReply { return c.features }

// Done is closed when the connection has failed or was closed.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended: ErrClosed after Close, nil while it is open.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection and waits until its goroutines and the running handler have
// ended. Calls that wait for the switch return ErrClosed. It must not be called from a
// handler.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	c.running.Wait()
	return nil
}

// fail ends the connection; only the first reason is kept.
func (c *Conn) fail(err error) {
	c.failOnce.Do(func() {
		if !errors.Is(err, ErrClosed) {
			c.cfg.Log.WithError(err).Info("OpenFlow connection lost")
		}
		c.err = errs.New(errs.Unavailable, "OpenFlow switch %s: %w", c.cfg.Target, err)
		close(c.done)
		c.nc.Close()
		c.pending.failAll(c.err)
		c.events.close()
	})
}

// Stats are counters of a connection since it was established.
type Stats struct {
	Sent, Received    uint64 // messages
	Errors            uint64 // error messages from the switch
	PacketIns         uint64
	DroppedPacketIns  uint64 // because the handler was too slow
	UnexpectedReplies uint64 // no call was waiting for them
}

type counters struct {
	received, errors, packetIns, dropped, unexpected atomic.Uint64
}

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	return Stats{
		Sent: c.w.sent.Load(), Received: c.stats.received.Load(), Errors: c.stats.errors.Load(),
		PacketIns: c.stats.packetIns.Load(), DroppedPacketIns: c.stats.dropped.Load(),
		UnexpectedReplies: c.stats.unexpected.Load(),
	}
}
