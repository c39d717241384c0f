package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// forwarder passes requests on to the leader, unchanged but for the hop header.
type forwarder struct {
	proxy *httputil.ReverseProxy
}

// attempt is one try to pass a request on; it travels in the request's context.
type attempt struct {
	leader  string
	notSent bool // nobody took the connection: the request has not left this process
}

type attemptKey struct{}

func newForwarder(self string) *forwarder {
	dialer := &net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}
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
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			a, _ := r.Context().Value(attemptKey{}).(*attempt)
			var (
				op    *net.OpError
				large *http.MaxBytesError
			)
			switch {
			case errors.As(err, &op) && op.Op == "dial":
				a.notSent = true // and nothing has been written to w
			case errors.As(err, &large):
				http.Error(w, "the body is larger than a request may be", http.StatusRequestEntityTooLarge)
			case r.Context().Err() != nil: // the client has gone
			default:
				refuse(w, "the leader "+a.leader+" was lost while it had this request, which may or may not have taken effect")
			}
		},
	}}
}

// forward passes a request on to the leader. It returns false if the leader was not
// reached and nothing has happened.
func (d *Daemon) forward(w http.ResponseWriter, r *http.Request, leader string) bool {
	a := &attempt{leader: leader}
	d.forwarder.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, a)))
	if !a.notSent {
		d.metrics.forwarded.Inc()
	}
	return !a.notSent
}
