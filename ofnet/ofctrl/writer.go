package ofctrl

import (
	"iter"
	"net"
	"sync"
	"sync/atomic"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
)

// flushSize is how many bytes are buffered before they are written.
const flushSize = 1 << 16

// writer encodes messages and writes them in order. A call of any size needs only one
// buffer: what is encoded is written before more is encoded.
type writer struct {
	timeout time.Duration
	sent    atomic.Uint64

	mu  sync.Mutex
	nc  net.Conn
	buf []byte

	xidMu   sync.Mutex
	nextXID uint32
}

func (w *writer) init(nc net.Conn, timeout time.Duration) {
	w.nc, w.timeout, w.nextXID = nc, timeout, 1
}

// xids reserves n consecutive transaction ids and returns the first. They never include 0,
// which the switch uses for its own messages.
func (w *writer) xids(n uint32) uint32 {
	w.xidMu.Lock()
	defer w.xidMu.Unlock()
	if w.nextXID+n < w.nextXID {
		w.nextXID = 1
	}
	first := w.nextXID
	w.nextXID += n
	return first
}

// send writes one message.
func (w *writer) send(xid uint32, m of.Message) error {
	return w.sendAll(xid, func(yield func(of.Message) bool) { yield(m) })
}

// sendAll writes messages with consecutive transaction ids from xid. It stops with a
// *MessageError at a message that cannot be encoded, after writing those before it; any
// other error is the connection's.
func (w *writer) sendAll(xid uint32, all iter.Seq[of.Message]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = w.buf[:0]
	var bad error
	n := 0
	for m := range all {
		var err error
		if w.buf, err = of.Append(w.buf, xid, m); err != nil {
			bad = &MessageError{Index: n, Message: m, Err: err}
			break
		}
		xid++
		n++
		if len(w.buf) >= flushSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.sent.Add(uint64(n))
	if err := w.flush(); err != nil {
		return err
	}
	return bad
}

// flush writes the buffer. A switch that does not read for too long has failed.
func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if err := w.nc.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	_, err := w.nc.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}
