package nameserver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// Config says how a Server answers.
type Config struct {
	// Domain is below what names are ours alone, without dots at the ends.
	Domain string
	TTL    uint32 // of records, seconds
	// ResolvConf is the file (resolv.conf(5)) that names the resolvers which are asked for
	// what is not ours. It is read again when it changes.
	ResolvConf string
	Log        logrus.FieldLogger
}

// Server answers the queries of one host's containers. Create it with New. All methods
// are safe for concurrent use.
type Server struct {
	cfg      Config
	names    *Names
	zone     zone
	upstream *upstream
	metrics  *metrics
	streams  *quota

	ctx     context.Context // of what is asked upstream; ends with Run
	cancel  context.CancelFunc
	mu      sync.Mutex
	stopped bool
	pending sync.WaitGroup // questions asked upstream
}

var _ drivers.NameServer = (*Server)(nil)

// New makes a Server. A domain that is none is Invalid.
func New(cfg Config) (*Server, error) {
	cfg.Domain = strings.ToLower(strings.Trim(cfg.Domain, "."))
	if _, ok := dns.IsDomainName(cfg.Domain); !ok || cfg.Domain == "" {
		return nil, errs.New(errs.Invalid, "domain %q of names: expected labels of 1 to 63 characters with dots between them", cfg.Domain)
	}
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	s := &Server{cfg: cfg, names: NewNames(cfg.Log), metrics: newMetrics(), streams: newQuota(maxStreams, maxStreams/4)}
	s.zone = zone{names: s.names, domain: cfg.Domain, ttl: cfg.TTL}
	s.upstream = newUpstream(cfg.ResolvConf)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Run lets the Server ask upstream until ctx ends; without it, it answers what it knows.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
	s.pending.Wait()
	return nil
}

// start runs f, which Run waits for; not any more when the Server stops.
func (s *Server) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.pending.Go(f)
	}
	return !s.stopped
}

// Apply takes in a batch of the state prefix; see Names.
func (s *Server) Apply(batch objdb.Batch) { s.names.Apply(batch) }

// maxUDP is the largest answer by UDP in bytes: what passes any link of 1280 bytes
// (RFC 9715 section 3).
const maxUDP = 1232

// Query answers a datagram, or passes it. It does not wait.
func (s *Server) Query(q drivers.DNSQuery) {
	began := time.Now()
	done := func(r result, answer *dns.Msg) {
		s.metrics.count(q.Tenant, r, time.Since(began))
		if answer == nil {
			return
		}
		if wire, err := answer.Pack(); err == nil {
			q.Answer(wire)
		}
	}
	req, answer, r := s.judge(q.Tenant, q.Message)
	switch {
	case !q.ToAgent && (r == invalid || r == askOthers):
		if r == askOthers {
			r = passed
		}
		q.Pass()
		done(r, nil)
	case r == askOthers:
		s.forward(q.Tenant, req, false, done)
	default:
		fit(req, answer, q.ToAgent)
		done(r, answer)
	}
}

// judge answers from the index. Without an answer the message goes elsewhere: to a
// resolver when the result is askOthers.
func (s *Server) judge(tenant string, message []byte) (req, answer *dns.Msg, r result) {
	req = &dns.Msg{}
	if err := req.Unpack(message); err != nil || req.Response || len(req.Question) == 0 || req.IsTsig() != nil {
		return req, nil, invalid
	}
	if req.Opcode != dns.OpcodeQuery {
		return req, nil, askOthers
	}
	if opt := req.IsEdns0(); opt != nil && opt.Version() != 0 {
		return req, nil, askOthers
	}
	answer = reply(req, dns.RcodeSuccess)
	ours, best := false, foreign
	for _, q := range req.Question {
		rrs, v := s.zone.resolve(tenant, q)
		answer.Answer = append(answer.Answer, rrs...)
		ours = ours || v != foreign
		if best == foreign || v == found || v == noData && best == noDomain {
			best = v
		}
	}
	if !ours {
		return req, nil, askOthers
	}
	answer.Authoritative = true
	name := strings.ToLower(strings.TrimSuffix(req.Question[0].Name, "."))
	if best != found && (name == s.zone.domain || strings.HasSuffix(name, "."+s.zone.domain)) {
		answer.Ns = []dns.RR{s.zone.soa()}
	}
	switch best {
	case noDomain:
		answer.Rcode = dns.RcodeNameError
		return req, answer, nxDomain
	case noData:
		return req, answer, empty
	}
	return req, answer, answered
}

// reply begins the answer to a query.
func reply(req *dns.Msg, rcode int) *dns.Msg {
	m := &dns.Msg{}
	m.SetRcode(req, rcode)
	m.Question = req.Question // all of them
	m.RecursionAvailable, m.Compress = true, true
	if req.IsEdns0() != nil {
		m.SetEdns0(maxUDP, false)
	}
	return m
}

// fit cuts an answer to what the client takes by UDP (RFC 1035 section 4.2.1, RFC 6891
// section 6.2.3). Whoever may ask again by TCP is told so: at a server that is not the
// agent nobody would know the name, and some of many addresses do.
func fit(req, answer *dns.Msg, mayRetry bool) {
	if answer == nil {
		return
	}
	size := dns.MinMsgSize
	if opt := req.IsEdns0(); opt != nil {
		size = min(max(size, int(opt.UDPSize())), maxUDP)
	}
	answer.Truncate(size)
	if !mayRetry && len(answer.Answer) > 0 {
		answer.Truncated = false
	}
}

// forward asks the host's resolvers, and tells done how it went.
func (s *Server) forward(tenant string, req *dns.Msg, tcp bool, done func(result, *dns.Msg)) {
	if req.Opcode != dns.OpcodeQuery || len(req.Question) != 1 {
		done(refused, reply(req, dns.RcodeNotImplemented))
		return
	}
	if opt := req.IsEdns0(); opt != nil && opt.Version() != 0 {
		done(refused, reply(req, dns.RcodeBadVers))
		return
	}
	if t := req.Question[0].Qtype; t == dns.TypeAXFR || t == dns.TypeIXFR {
		done(refused, reply(req, dns.RcodeRefused))
		return
	}
	release, ok := s.upstream.quota.take(tenant)
	if !ok {
		done(limited, reply(req, dns.RcodeServerFailure))
		return
	}
	started := s.start(func() {
		defer release()
		answer, err := s.upstream.ask(s.ctx, req, tcp)
		if err != nil {
			s.cfg.Log.WithError(err).WithField("tenant", tenant).Debug("a name query is not answered by the host's resolvers")
			done(failed, reply(req, dns.RcodeServerFailure))
			return
		}
		if !tcp {
			fit(req, answer, true)
		}
		done(forwarded, answer)
	})
	if !started {
		release()
		done(limited, nil)
	}
}
