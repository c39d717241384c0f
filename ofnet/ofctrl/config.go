package ofctrl

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Defaults of Config.
const (
	defaultEchoInterval = 5 * time.Second
	defaultEchoTimeout  = 15 * time.Second
	handshakeTimeout    = 5 * time.Second
)

// Config says which switch to connect to and how to handle what it sends. Only Target must
// be set.
type Config struct {
	// Target is "unix:PATH" or "tcp:HOST:PORT".
	Target string

	// Log receives connects, losses and unexpected errors; nil discards them.
	Log logrus.FieldLogger

	// After EchoInterval without a message the switch is sent an echo request; after
	// EchoTimeout without one the connection has failed. 5 s and 15 s if zero. The same
	// timeout limits how long the switch may refuse to read.
	EchoInterval, EchoTimeout time.Duration

	// The handlers are called for the switch's own messages, one after the other in
	// order of arrival, from a separate goroutine, so they may use the Conn. They must
	// not call Close. If PacketIn is too slow, packets beyond a queue of 1,024 are
	// dropped and counted; the others are never dropped.
	PacketIn    func(*of.PacketIn)
	PortStatus  func(*of.PortStatus)
	FlowRemoved func(*of.FlowRemoved)

	// Userdata asks for packet-ins that carry the userdata of controller actions.
	Userdata bool
}

func (c Config) withDefaults() Config {
	if c.EchoInterval <= 0 {
		c.EchoInterval = defaultEchoInterval
	}
	if c.EchoTimeout <= 0 {
		c.EchoTimeout = max(defaultEchoTimeout, 3*c.EchoInterval)
	}
	if c.Log == nil {
		log := logrus.New()
		log.SetOutput(discard{})
		c.Log = log
	}
	c.Log = c.Log.WithField("switch", c.Target)
	return c
}

// discard is the output of a logger that writes nothing.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// dial opens the transport for the target.
func (c Config) dial(ctx context.Context) (net.Conn, error) {
	network, address, ok := strings.Cut(c.Target, ":")
	if !ok || address == "" || network != "unix" && network != "tcp" {
		return nil, errs.New(errs.Invalid, "OpenFlow target %q: expected unix:PATH or tcp:HOST:PORT", c.Target)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "connect to OpenFlow switch %s: %w", c.Target, err)
	}
	return conn, nil
}
