package ofctrl

import (
	"errors"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// handshake exchanges HELLO and FEATURES and asks for asynchronous messages, before
// any goroutine runs.
func (c *Conn) handshake(r *messageReader) error {
	if err := c.w.send(c.w.xids(1), &of.Hello{Bitmap: 1 << of.Version}); err != nil {
		return err
	}
	if err := c.awaitHello(r); err != nil {
		return err
	}
	if err := c.w.send(c.w.xids(1), &of.FeaturesRequest{}); err != nil {
		return err
	}
	for {
		h, m, err := r.next()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *of.FeaturesReply:
			c.features = *m
			return c.configure()
		case *of.EchoRequest:
			err = c.w.send(h.XID, &of.EchoReply{Data: m.Data})
		case *of.Error:
			err = errs.New(errs.Invalid, "switch rejected the handshake: %w", m)
		default:
			c.async(m)
		}
		if err != nil {
			return err
		}
	}
}

// awaitHello reads the switch's HELLO, which must be its first message.
func (c *Conn) awaitHello(r *messageReader) error {
	_, m, err := r.next()
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *of.Hello:
		if !m.Speaks(of.Version) {
			return errs.New(errs.Invalid, "switch speaks OpenFlow versions %#b up to wire version %d, not 1.3", m.Bitmap, m.Version)
		}
		return nil
	case *of.Error:
		return errs.New(errs.Invalid, "switch rejected HELLO: %w", m)
	default:
		return errs.New(errs.Invalid, "switch sent %s first, expected HELLO", m.Type())
	}
}

// configure asks for whole packets in packet-ins. On a management socket this is also what
// makes the switch send packet-in, port-status and flow-removed at all.
func (c *Conn) configure() error {
	if err := c.w.send(c.w.xids(1), &of.SetConfig{MissSendLen: of.MaxLenFull}); err != nil {
		return err
	}
	if !c.cfg.Userdata {
		return nil
	}
	return c.w.send(c.w.xids(1), &of.SetPacketInFormat{Format: of.PacketInFormat2})
}

// handshakeKind distinguishes a peer that does not speak OpenFlow 1.3, where retrying is
// pointless, from one that is unreachable.
func handshakeKind(err error) errs.Kind {
	switch k := errs.KindOf(err); {
	case k != errs.Other:
		return k
	case errors.Is(err, of.ErrMalformed):
		return errs.Invalid
	}
	return errs.Unavailable
}
