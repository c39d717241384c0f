package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/tlsport"
)

// forwarder passes requests on to the leader, unchanged but for the hop header.
type forwarder struct {
	proxy *httputil.ReverseProxy
}

// attempt is one try to pass a request on; it travels in the request's context.
type attempt struct {
	leader string
	failed string // why the leader did not take it, or not answer it; nothing has been written then
}

type attemptKey struct{}

func newForwarder(self string, dialer *tlsport.Dialer) *forwarder {
	return &forwarder{proxy: &httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext:           dialer.DialContext,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       30 * time.Second,
			ResponseHeaderTimeout: 2 * time.Minute,
			DisableCompression:    true, // pass on what the client asked for
		},
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			a, _ := p.In.Context().Value(attemptKey{}).(*attempt)
			p.Out.URL.Scheme, p.Out.URL.Host = "http", a.leader
			p.Out.URL.RawQuery = p.In.URL.RawQuery // also what does not parse
			p.Out.Host = p.In.Host
			p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
			p.SetXForwarded()
			p.Out.Header.Set(hop, self)
			if dialer.Mode.TLS() { // in the original's way a token is for whoever serves
				for _, h := range tokenHeaders {
					p.Out.Header.Del(h)
				}
				identity.Forward(p.Out.Header, identity.From(p.In.Context()))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get(notServed) != "" {
				return errNotServed
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			a, _ := r.Context().Value(attemptKey{}).(*attempt)
			var op *net.OpError
			switch {
			case errors.As(err, &op) && op.Op == "dial":
				a.failed = "cannot be reached"
			case errors.Is(err, errNotServed):
				a.failed = "does not lead any more"
			case r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), errReplaced): // the client has gone
			case r.Method == http.MethodGet || r.Method == http.MethodHead: // the next leader can tell as well
				a.failed = "was lost while it had this request"
			default:
				refuse(w, "the leader "+a.leader+" was lost while it had this request, which may or may not have taken effect")
			}
		},
	}}
}

// tokenHeaders carry tokens. They end at the netmaster that has checked them: the leader is
// told who asks.
var tokenHeaders = []string{"X-Auth-Token", "Authorization", "Cookie"}

var (
	errNotServed = errors.New("the request was not served")
	errReplaced  = errors.New("the leader was replaced")
)

// replacedFor is how long a leader that leads no more may take to answer what it was
// sent before. One that was cut off never answers, and its connections do not break.
const replacedFor = time.Second

// giveUp cancels a request to a leader when it has been replaced for a while. It ends
// with ctx.
func (d *Daemon) giveUp(ctx context.Context, leader string, cancel context.CancelCauseFunc) {
	for {
		v := d.state.view()
		if v.leader != leader {
			if retry.Pause(ctx, replacedFor) {
				cancel(errReplaced)
			}
			return
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return
		}
	}
}

// forward passes a request on to the leader. It returns why the leader did not take it,
// and then nothing has happened, or why it did not answer what changes nothing, or "".
func (d *Daemon) forward(w http.ResponseWriter, r *http.Request, leader string) string {
	if err := keepBody(r); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, "request body is too large", http.StatusRequestEntityTooLarge)
			return ""
		}
		http.Error(w, "cannot read the request body: "+err.Error(), http.StatusBadRequest)
		return ""
	}
	a := &attempt{leader: leader}
	ctx, cancel := context.WithCancelCause(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { d.giveUp(ctx, leader, cancel) })
	d.forwarder.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, attemptKey{}, a)))
	if a.failed == "" {
		d.metrics.forwarded.Inc()
	}
	return a.failed
}

// keepBody reads the body, so that the request can be sent more than once.
func keepBody(r *http.Request) error {
	if r.GetBody == nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	}
	return rewind(r)
}

// rewind has a body that was kept read from its beginning: a leader that was lost may have
// taken it.
func rewind(r *http.Request) error {
	if r.GetBody == nil {
		return nil
	}
	var err error
	r.Body, err = r.GetBody()
	return err
}
