// Package relay stands between a Docker Engine and the agent. An Engine that does not find
// its plugin retries for fifteen seconds for each network and container, one after the
// other, and does not serve meanwhile. The Relay is always there. It passes calls to the
// agent, waits for a short time if the agent is unreachable, and then answers itself:
// removals succeed, and are sent to the agent when it is back; everything else fails
// immediately with a reason.
package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/utils/errs"
)

// DefaultSocket is where the agent serves a Relay.
const DefaultSocket = "/run/contiv/docker-plugin.sock"

// DefaultPatience is how long an agent may be unreachable before the Relay answers for it:
// long enough for a restart, short enough for an Engine to be up within 15 s.
const DefaultPatience = 8 * time.Second

// DefaultLimit is the agent's time for a call: longer than its own limit.
const DefaultLimit = 11 * time.Second

// again is how often an agent that is unreachable is called.
const again = 50 * time.Millisecond

// maxBody limits a request and a reply, in bytes.
const maxBody = 1 << 20

// Config configures a Relay.
type Config struct {
	// Agent is the path of the agent's socket.
	Agent string
	// Capabilities of the network driver, equal to the agent's.
	Capabilities cnm.Capabilities
	// Patience is how long to wait for an agent; 0 means DefaultPatience.
	Patience time.Duration
	// Limit limits one call of a reachable agent; 0 means DefaultLimit.
	Limit time.Duration
	Log   logrus.FieldLogger
}

// Relay is an http.Handler. Create it with New, and Run it: otherwise an agent that was
// given up is never called again.
type Relay struct {
	cfg    Config
	client *http.Client
	lost   chan struct{} // tells Run that the agent was given up, or has removals to get

	mu     sync.Mutex
	missed time.Time     // since when the agent is unreachable; zero while it is reachable
	gone   bool          // given up
	hangs  bool          // given up because it did not answer
	back   chan struct{} // not nil while removals are sent; closed afterwards
	owed   []debt        // oldest first
}

// New makes a Relay.
func New(cfg Config) *Relay {
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	var d net.Dialer
	return &Relay{cfg: cfg, lost: make(chan struct{}, 1), client: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", cfg.Agent)
		},
	}}}
}

// errUnreachable says that the agent has not received the call, or has ended before it
// answered: calls are safe to repeat.
type errUnreachable struct{ error }

// ServeHTTP answers one call of the Engine.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		reply(w, http.StatusBadRequest, failure(err.Error()))
		return
	}
	if answer, ok := cnm.Fixed(req.URL.Path, r.cfg.Capabilities); ok {
		reply(w, http.StatusOK, answer)
		return
	}
	status, answer, err := r.pass(req.Context(), req.Method, req.URL.Path, body)
	switch {
	case err == nil:
		w.Header().Set("Content-Type", cnm.ContentType)
		w.WriteHeader(status)
		_, _ = w.Write(answer) // it does not matter if the Engine has gone
	case removes(req.URL.Path):
		r.owe(req.URL.Path, body)
		reply(w, http.StatusOK, cnm.Empty{})
	default:
		r.cfg.Log.WithError(err).WithField("call", req.URL.Path).Warn("the agent did not answer a call of the Docker Engine")
		reply(w, http.StatusInternalServerError, failure("the Contiv agent on this host does not answer: see that netplugin runs, and try again"))
	}
}

// pass calls the agent. While it is unreachable the call is repeated until Patience is
// over.
func (r *Relay) pass(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		if err := r.believed(ctx); err != nil {
			return 0, nil, err
		}
		status, answer, err = r.once(ctx, method, path, body)
		var unreachable errUnreachable
		switch {
		case err == nil:
			r.there()
			return status, answer, nil
		case errs.Is(err, errs.Timeout):
			r.giveUp(true)
			return 0, nil, err
		case !errors.As(err, &unreachable):
			return 0, nil, err
		}
		if r.unreachableFor() >= r.cfg.Patience {
			r.giveUp(false)
			return 0, nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, nil, errs.Wrap(errs.Unavailable, ctx.Err())
		}
	}
}

// once calls the agent once.
func (r *Relay) once(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.Limit, errs.New(errs.Timeout, "no answer after %s", r.cfg.Limit))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errs.Wrap(errs.Invalid, err)
	}
	resp, err := r.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		var answer []byte
		if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err == nil {
			return resp.StatusCode, answer, nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return 0, nil, cause
	}
	return 0, nil, errUnreachable{fmt.Errorf("call the agent: %w", err)}
}

// removes reports whether a call removes something.
func removes(path string) bool {
	_, name, _ := strings.Cut(path, ".")
	switch name {
	case "Leave", "DeleteEndpoint", "RevokeExternalConnectivity", "DeleteNetwork", "ReleaseAddress", "ReleasePool":
		return true
	}
	return false
}

func failure(text string) cnm.Error { return cnm.Error{Err: text, Error: text} }

func reply(w http.ResponseWriter, status int, v any) { cnm.Answer(w, status, v) }
