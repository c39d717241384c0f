package ofctrl

import (
	"bufio"
	"fmt"
	"io"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
)

// messageReader splits the stream into messages.
type messageReader struct {
	r   *bufio.Reader
	buf []byte // of the current message
}

// maxVersion is the highest wire version that exists (OpenFlow 1.5). A peer that sends
// another number in its HELLO is not a switch.
const maxVersion = 6

// decodeError is a malformed message; the stream continues after it.
type decodeError struct {
	err error
}

func (e *decodeError) Error() string { return e.err.Error() }
func (e *decodeError) Unwrap() error { return e.err }

// next reads one message. A *decodeError concerns this message only.
func (r *messageReader) next() (of.Header, of.Message, error) {
	var head [of.HeaderLen]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return of.Header{}, nil, fmt.Errorf("read message: %w", err)
	}
	h, err := of.DecodeHeader(head[:])
	if err == nil && (h.Version == 0 || h.Version > maxVersion) {
		err = fmt.Errorf("%w: version %d", of.ErrMalformed, h.Version)
	}
	if err != nil {
		return h, nil, err // the start of the next message is unknown
	}
	if cap(r.buf) < int(h.Length) {
		r.buf = make([]byte, max(int(h.Length), 4096))
	}
	r.buf = r.buf[:h.Length]
	copy(r.buf, head[:])
	if _, err := io.ReadFull(r.r, r.buf[of.HeaderLen:]); err != nil {
		return h, nil, fmt.Errorf("read %s: %w", h.Type, err)
	}
	_, m, err := of.Decode(r.buf)
	if err != nil {
		return h, nil, &decodeError{err}
	}
	return h, m, nil
}

// readLoop handles messages until the connection ends.
func (c *Conn) readLoop(r *messageReader) error {
	for {
		h, m, err := r.next()
		c.lastRead.Store(time.Now().UnixNano())
		c.stats.received.Add(1)
		if bad, ok := err.(*decodeError); ok { // next returns it unwrapped
			if !c.pending.fail(h.XID, bad) {
				c.cfg.Log.WithError(bad).Warn("ignored a malformed OpenFlow message")
			}
			continue
		}
		if err != nil {
			return err
		}
		c.handle(h, m)
	}
}

// handle passes a message to the call or handler for it. It never blocks.
func (c *Conn) handle(h of.Header, m of.Message) {
	switch m := m.(type) {
	case *of.EchoRequest:
		// Another goroutine answers: if this one waited to write while the switch waits
		// to be read, neither would continue.
		select {
		case c.echoes <- echoRequest{h.XID, m.Data}:
		default: // 16 are unanswered already; one more will not matter
		}
	case *of.EchoReply:
		// Only lastRead matters, which is set.
	case *of.Error:
		c.stats.errors.Add(1)
		if !c.pending.deliver(h, m) {
			c.cfg.Log.WithError(m).WithField("xid", h.XID).Warn("OpenFlow error")
		}
	case *of.PacketIn, *of.PortStatus, *of.FlowRemoved:
		c.async(m)
	default:
		if !c.pending.deliver(h, m) {
			c.stats.unexpected.Add(1)
			c.cfg.Log.WithField("type", m.Type()).Debug("unexpected OpenFlow message")
		}
	}
}
