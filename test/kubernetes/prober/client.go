package prober

import (
	"context"
	"fmt"
	"net/netip"
	"net/rpc"
	"time"
)

// Client has a Server do things. It is safe for concurrent use.
type Client struct{ rpc *rpc.Client }

// Dial connects with the Server at a Unix socket.
func Dial(socket string) (*Client, error) {
	c, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// Close ends the connection with the Server.
func (c *Client) Close() error { return c.rpc.Close() }

func (c *Client) call(ctx context.Context, method string, in, out any) error {
	call := c.rpc.Go("Server."+method, in, out, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// Ask asks all targets at once, which may take as long as patience says, and returns
// their names; "" of who did not answer.
func (c *Client) Ask(ctx context.Context, targets []Target, patience time.Duration) (names []string, err error) {
	return names, c.call(ctx, "Ask", Question{targets, patience}, &names)
}

// First returns what the first target of Command has answered; it can be asked once.
func (c *Client) First(ctx context.Context) (name string, err error) {
	return name, c.call(ctx, "First", struct{}{}, &name)
}

// Open opens a connection with another Server and returns its number.
func (c *Client) Open(ctx context.Context, to netip.AddrPort, patience time.Duration) (stream int, err error) {
	return stream, c.call(ctx, "Open", Opening{to, patience}, &stream)
}

// Echo sends a word, other than those before, on an open connection and reports whether
// it came back.
func (c *Client) Echo(ctx context.Context, stream int, word string, patience time.Duration) (back bool, err error) {
	return back, c.call(ctx, "Echo", Word{stream, word, patience}, &back)
}
