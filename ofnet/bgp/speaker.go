package bgp

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// Options configure notifications and logging.
type Options struct {
	Log logrus.FieldLogger
	// OnChange, if set, is called when Routes or Settled may have changed. It must not
	// block.
	OnChange func()
}

// Speaker is the BGP speaker of a host. Create it with New; all methods are safe for
// concurrent use.
type Speaker struct {
	opt  Options
	kick chan struct{}

	mu       sync.Mutex
	declared bool // Configure has been called
	wanted   *Config
	announce map[netip.Addr]struct{}
	srv      *server // nil while none runs
	routes   []Route
	settled  bool
	err      error // why it is not as configured
}

// New creates a Speaker; nothing happens before Run.
func New(opt Options) *Speaker {
	if opt.Log == nil {
		opt.Log = logrus.StandardLogger()
	}
	return &Speaker{opt: opt, kick: make(chan struct{}, 1), announce: map[netip.Addr]struct{}{}}
}

// Configure sets the desired configuration, nil for no speaker. An invalid Config changes
// nothing. Nothing happens before the first call. Announce should be called before it, so
// that neighbors that have kept the routes of an earlier speaker get the complete set.
func (s *Speaker) Configure(c *Config) error {
	if c != nil {
		if err := c.Validate(); err != nil {
			return err
		}
		own := *c
		own.Neighbors = slices.Clone(c.Neighbors)
		if own.Port == 0 {
			own.Port = Port
		}
		c = &own
	}
	s.mu.Lock()
	s.declared, s.wanted = true, c
	s.mu.Unlock()
	s.wake()
	return nil
}

// Announce sets the addresses to announce, each as a host route.
func (s *Speaker) Announce(addrs []netip.Addr) {
	all := make(map[netip.Addr]struct{}, len(addrs))
	for _, a := range addrs {
		all[a] = struct{}{}
	}
	s.mu.Lock()
	s.announce = all
	s.mu.Unlock()
	s.wake()
}

// Routes lists the learned routes, by prefix.
func (s *Speaker) Routes() []Route {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes
}

// Settled reports whether Routes is complete: every neighbor has sent everything since the
// speaker started, or has had enough time for it. Once true it stays true.
func (s *Speaker) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled
}

// Err returns why the speaker is not as configured, or nil.
func (s *Speaker) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Speaker) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// settleTime is how long a new speaker waits for neighbors that do not connect.
const settleTime = 60 * time.Second

// Run runs the speaker until ctx ends.
func (s *Speaker) Run(ctx context.Context) error {
	const least, slowest = 20 * time.Millisecond, 5 * time.Second // between passes
	again := retry.New(2*least, slowest)
	patience := time.NewTimer(settleTime)
	defer patience.Stop()
	defer func() {
		if srv := s.current(); srv != nil {
			srv.stop(true)
			s.use(nil)
		}
	}()
	for {
		wait := least
		err := s.converge(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.note(err)
		if err == nil {
			again.Reset()
		} else {
			wait = again.Next()
		}
		// Events come in bursts: one pass handles all that are pending.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		if err != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.kick:
		case <-patience.C:
			s.mu.Lock()
			s.settled = true
			s.mu.Unlock()
			s.changed()
		}
	}
}

func (s *Speaker) current() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

func (s *Speaker) use(srv *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv = srv
}

func (s *Speaker) changed() {
	if s.opt.OnChange != nil {
		s.opt.OnChange()
	}
}

// note records why a pass failed, and logs it once.
func (s *Speaker) note(err error) {
	s.mu.Lock()
	said := s.err != nil && err != nil && s.err.Error() == err.Error()
	s.err = err
	s.mu.Unlock()
	if err != nil && !said {
		s.opt.Log.WithError(err).Warn("cannot apply the BGP configuration; retrying")
	}
}

// converge makes one pass: the server, its announcements, its neighbors, and then the
// learned routes.
func (s *Speaker) converge(ctx context.Context) error {
	s.mu.Lock()
	declared, wanted, announce, srv, settled := s.declared, s.wanted, s.announce, s.srv, s.settled
	s.mu.Unlock()
	if !declared {
		return nil
	}
	if srv != nil && (wanted == nil || !srv.cfg.same(wanted)) {
		if wanted == nil {
			srv.withdraw(ctx)
		}
		srv.stop(false)
		s.use(nil)
		srv = nil
	}
	if wanted == nil {
		s.publish(nil, true)
		return nil
	}
	if srv == nil {
		fresh, err := startServer(ctx, *wanted, s.opt.Log, s.wake)
		if err != nil {
			return errs.New(errs.Unavailable, "start the BGP speaker on %s: %w", wanted.Router.Addr(), err)
		}
		srv = fresh
		s.use(srv)
	}
	// Announcements first: a neighbor that connects receives them immediately.
	if err := srv.setPaths(announce); err != nil {
		return err
	}
	if err := srv.setNeighbors(ctx, wanted.Neighbors, !settled); err != nil {
		return err
	}
	if err := srv.tell(ctx); err != nil {
		return err
	}
	complete := srv.heardAll() // before the routes are read, which then have all that was heard
	routes, err := srv.read()
	if err != nil {
		return err
	}
	s.publish(routes, complete)
	return nil
}

func (s *Speaker) publish(routes []Route, settled bool) {
	s.mu.Lock()
	same := s.settled || !settled
	same = same && slices.EqualFunc(s.routes, routes, func(a, b Route) bool { return a.Prefix == b.Prefix && slices.Equal(a.Hops, b.Hops) })
	s.routes = routes
	s.settled = s.settled || settled
	s.mu.Unlock()
	if !same {
		s.changed()
	}
}
