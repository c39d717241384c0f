// Package appctl runs commands in a daemon of Open vSwitch, as ovs-appctl(8) does: JSON-RPC
// (version 1.0) over the daemon's control socket.
package appctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// maxReply limits a reply, in bytes.
const maxReply = 16 << 20

type request struct {
	ID     int      `json:"id"`
	Method string   `json:"method"`
	Params []string `json:"params"`
}

type reply struct {
	Result *string         `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Call runs a command in the daemon behind a socket and returns its output. A command that
// the daemon rejects is Invalid; a daemon that cannot be reached, or breaks off, is
// Unavailable.
func Call(ctx context.Context, socket, command string, args ...string) (string, error) {
	p, err := Send(ctx, socket, command, args...)
	if err != nil {
		return "", err
	}
	return p.Answer()
}

// Pending is a command that was sent.
type Pending struct {
	ctx     context.Context
	command string
	conn    net.Conn
	stop    func() bool
}

// Send sends a command. The daemon handles it before commands that are sent later. Close or
// Answer must be called.
func Send(ctx context.Context, socket, command string, args ...string) (*Pending, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "control socket %s: %w; is the daemon running?", socket, err)
	}
	p := &Pending{ctx: ctx, command: command, conn: conn}
	p.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if args == nil {
		args = []string{} // null is not a list
	}
	if err := json.NewEncoder(conn).Encode(request{ID: 1, Method: command, Params: args}); err != nil {
		p.Close()
		return nil, broken(ctx, command, err)
	}
	return p, nil
}

// Answer returns the command's output, with Call's errors.
func (p *Pending) Answer() (string, error) {
	defer p.Close()
	var r reply
	if err := json.NewDecoder(io.LimitReader(p.conn, maxReply)).Decode(&r); err != nil {
		return "", broken(p.ctx, p.command, err)
	}
	if r.Result == nil {
		return "", errs.New(errs.Invalid, "%s: %s", p.command, refusal(r.Error))
	}
	return *r.Result, nil
}

// Close gives the answer up.
func (p *Pending) Close() {
	p.stop()
	p.conn.Close()
}

func broken(ctx context.Context, command string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return errs.New(errs.Unavailable, "%s: no answer: %w", command, err)
}

// refusal is the daemon's reason as one line.
func refusal(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return strings.Join(strings.Fields(text), " ")
}

// Find returns the control socket in a run directory at which the daemon called name
// answers. A daemon that was killed leaves its socket behind.
func Find(ctx context.Context, dir, name string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, name+".*ctl"))
	if err != nil {
		return "", errs.Wrap(errs.Invalid, fmt.Errorf("run directory %s: %w", dir, err))
	}
	refused := errors.New("no such socket")
	for _, path := range paths {
		if _, err = Call(ctx, path, "version"); err == nil {
			return path, nil
		}
		refused = err
	}
	return "", errs.New(errs.Unavailable, "no %s answers in %s: %w", name, dir, refused)
}
