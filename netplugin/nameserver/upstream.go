package nameserver

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of what is asked upstream.
const (
	maxForwards     = 256 // questions at a time; a tenant has a quarter of them
	upstreamTimeout = 2 * time.Second
)

// upstream asks the resolvers that the host uses.
type upstream struct {
	path    string
	timeout time.Duration // for one server and one try
	quota   *quota

	mu      sync.Mutex
	read    time.Time // modification time of what was read
	servers []string  // host:port
}

func newUpstream(path string) *upstream {
	return &upstream{path: path, timeout: upstreamTimeout, quota: newQuota(maxForwards, maxForwards/4)}
}

// resolvers lists the servers to ask, in order.
func (u *upstream) resolvers() ([]string, error) {
	info, err := os.Stat(u.path)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "resolvers of this host: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !info.ModTime().Equal(u.read) || u.servers == nil {
		conf, err := dns.ClientConfigFromFile(u.path)
		if err != nil {
			return nil, errs.New(errs.Unavailable, "resolvers of this host: %s: %w", u.path, err)
		}
		u.servers = nil
		for _, s := range conf.Servers {
			u.servers = append(u.servers, net.JoinHostPort(s, conf.Port))
		}
		u.read = info.ModTime()
	}
	if len(u.servers) == 0 {
		return nil, errs.New(errs.Unavailable, "resolvers of this host: %s names none", u.path)
	}
	return u.servers, nil
}

// ask asks one server after the other until one answers, by UDP, and again by TCP when
// the answer is cut and whole says that the client could take all of it.
func (u *upstream) ask(ctx context.Context, req *dns.Msg, whole bool) (*dns.Msg, error) {
	servers, err := u.resolvers()
	if err != nil {
		return nil, err
	}
	question := req.Copy()
	question.Id = dns.Id() // not the client's: it must be hard to guess (RFC 5452 section 4.3)
	question.Extra = nil   // cookies and sizes are between two neighbors
	do := false
	if opt := req.IsEdns0(); opt != nil {
		do = opt.Do()
	}
	question.SetEdns0(maxUDP, do)
	var failures []error
	for _, server := range servers {
		answer, err := u.exchange(ctx, "udp", server, question)
		if err == nil && answer.Truncated && whole {
			answer, err = u.exchange(ctx, "tcp", server, question)
		}
		if err == nil && answer.Rcode == dns.RcodeFormatError { // it does not know EDNS
			plain := question.Copy()
			plain.Extra = nil
			answer, err = u.exchange(ctx, "udp", server, plain)
		}
		if err == nil {
			return u.present(req, answer), nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs.New(errs.Unavailable, "no resolver answers for %s: %w", req.Question[0].Name, errors.Join(failures...))
}

func (u *upstream) exchange(ctx context.Context, network, server string, m *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	c := dns.Client{Net: network, Timeout: u.timeout, UDPSize: maxUDP}
	answer, _, err := c.ExchangeContext(ctx, m, server)
	switch {
	case err != nil:
		return nil, err
	case !answer.Response || len(answer.Question) > 1 || len(answer.Question) == 1 && answer.Question[0] != m.Question[0]:
		return nil, errs.New(errs.Unavailable, "%s answers something else", server)
	}
	return answer, nil
}

// present makes the answer one to the client's own message.
func (u *upstream) present(req, answer *dns.Msg) *dns.Msg {
	out := answer.Copy()
	out.Id, out.RecursionDesired, out.Question, out.Compress = req.Id, req.RecursionDesired, req.Question, true
	out.Authoritative = false
	extra := out.Extra[:0]
	for _, rr := range out.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	if out.Extra = extra; req.IsEdns0() != nil {
		out.SetEdns0(maxUDP, req.IsEdns0().Do())
	} else if out.Rcode > 0xf { // a code that needs EDNS to be written
		out.Rcode = dns.RcodeServerFailure
	}
	return out
}
