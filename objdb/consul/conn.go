package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/hashicorp/consul/api"
)

// How long an agent may take to begin its answer. Agents wait for servers that have no
// leader, 7 s unless set otherwise, and then say so. A request that may be repeated is
// better sent to another agent, which may know one; for a write "there was no leader" is
// worth waiting for, because then it has not happened.
const (
	answerWithin = 3 * time.Second
	commitWithin = 10 * time.Second
)

// errSilent is what a request fails with when its agent did not answer in time.
var errSilent = errors.New("no answer")

// statusError is an answer with a status that says that the request was not served.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.code, e.text) }

// transport turns answers that report a failure into errors. (The client library drops
// the status of some of them.) 404 and 409 are answers: no such key or session, and a
// transaction that was refused.
type transport struct{ base http.RoundTripper }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusConflict {
		return resp, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 512))
	if err != nil {
		text = fmt.Append(text, " (", err, ")")
	}
	return nil, &statusError{code: resp.StatusCode, text: strings.TrimSpace(string(text))}
}

// sending is what is known about one try of a request.
type sending struct {
	err  error
	sent bool // there was a connection to send it over
}

// try sends one request to the agent that is used at present, which has to begin its
// answer within the time given, and turns to the next agent if this one fails.
func (s *Store) try(ctx context.Context, within time.Duration, f func(context.Context, *api.Client) error) sending {
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(within, func() { cancel(errSilent) })
	defer timer.Stop()
	var sent atomic.Bool
	tctx = httptrace.WithClientTrace(tctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { sent.Store(true) },
		GotFirstResponseByte: func() { timer.Stop() },
	})
	i := s.current.Load()
	err := f(tctx, s.clients[i])
	if err != nil && ctx.Err() == nil {
		if errors.Is(context.Cause(tctx), errSilent) {
			err = fmt.Errorf("%w within %s", errSilent, within)
		}
		if passing(err) {
			s.current.CompareAndSwap(i, (i+1)%int32(len(s.clients)))
		}
	}
	return sending{err: err, sent: sent.Load()}
}

// repeat sends a request that may be repeated until it is answered.
func (s *Store) repeat(ctx context.Context, f func(context.Context, *api.Client) error) error {
	b := remote.NewBackoff()
	for {
		t := s.try(ctx, answerWithin, f)
		if t.err == nil || !passing(t.err) || s.life.Over() || !b.Wait(ctx) {
			return t.err
		}
	}
}
