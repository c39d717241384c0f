package nodeproxy

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// Config says what a Proxy works with.
type Config struct {
	// Inside names the links to containers.
	Inside []string
	// Subnets are where Services have their addresses, as far as known: what is for one
	// that no Service has is refused.
	Subnets []netip.Prefix
	Log     logrus.FieldLogger
}

// Proxy keeps the node's table equal to the Services that are declared. Make it with New.
type Proxy struct {
	cfg  Config
	kick chan struct{}

	mu       sync.Mutex
	services map[string]Service
	compiled map[string]program
	released bool
	version  uint64 // of what is declared
	err      error  // why not everything is as declared
}

// New makes a Proxy; it does nothing before Run.
func New(cfg Config) *Proxy {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	return &Proxy{
		cfg: cfg, kick: make(chan struct{}, 1), services: map[string]Service{}, compiled: map[string]program{},
		err: errs.New(errs.Unavailable, "Services have not been declared yet: the API server has not been reached"),
	}
}

// Set declares a Service.
func (p *Proxy) Set(s Service) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.services[s.ID]; ok && old.Equal(s) {
		return
	}
	p.services[s.ID], p.compiled[s.ID] = s, compile(s)
	p.version++
	p.wake()
}

// Remove takes a declaration back.
func (p *Proxy) Remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.services, id)
	delete(p.compiled, id)
	p.version++
	p.wake()
}

// Release says that every Service has been declared. Until then the table stays as a
// predecessor has left it.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = true
	p.wake()
}

func (p *Proxy) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Ready returns nil when the node load-balances Services as declared, or why it does not.
func (p *Proxy) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// declared is everything that is declared.
type declared struct {
	version  uint64 // greater for every change
	services []Service
	program  program
}

// wanted is everything declared, once all of it is known.
func (p *Proxy) wanted() (all declared, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		return all, false
	}
	all = declared{version: p.version, program: newProgram()}
	for _, id := range slices.Sorted(maps.Keys(p.services)) {
		all.services = append(all.services, p.services[id])
		all.program.add(p.compiled[id])
	}
	return all, true
}

const (
	// lookAgain is how often the table is checked for changes by others.
	lookAgain = 30 * time.Second
	// A failed attempt is repeated after these times.
	firstRetry, lastRetry = 200 * time.Millisecond, 10 * time.Second
)

// Run works until ctx ends. What it has set up stays.
func (p *Proxy) Run(ctx context.Context) error {
	node := &node{health: newHealth(p.cfg.Log), cfg: p.cfg, log: p.cfg.Log}
	defer node.health.close()
	again := retry.New(firstRetry, lastRetry)
	for {
		wait := lookAgain
		if all, ok := p.wanted(); ok {
			err := node.realise(ctx, all)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				wait = again.Next()
			} else {
				again.Reset()
			}
			p.note(err, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-p.kick:
		case <-timer.C:
			node.suspicious = true
		}
		timer.Stop()
	}
}

// note notes, and logs once, why Services are not programmed; wait is the time to the next
// attempt.
func (p *Proxy) note(err error, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && (p.err == nil || p.err.Error() != err.Error()) {
		p.cfg.Log.WithError(err).Warnf("cannot program Service load balancing on this node; retrying in %s", wait.Round(time.Millisecond))
	}
	p.err = err
}

// node is what Run works on.
type node struct {
	kernel     *kernel
	health     *health
	cfg        Config
	log        logrus.FieldLogger
	suspicious bool // it is time to look whether everything is still there
	forwarded  bool // connections go where the version wants them
	version    uint64
}

// realise brings everything about.
func (n *node) realise(ctx context.Context, all declared) error {
	if n.kernel == nil {
		nft, err := open()
		if err != nil {
			return err
		}
		removeFormer(ctx, n.log)
		n.kernel = newKernel(nft, n.cfg)
	}
	k := n.kernel
	k.want(all.program)
	if n.suspicious && k.there && !k.intact(ctx) {
		n.log.WithField("table", Table).Warn("another program has changed the nftables table of Services; writing it again")
		k.forget()
	}
	n.suspicious = false
	if !k.there {
		if err := k.read(ctx); err != nil {
			return err
		}
	}
	changed := k.pending()
	if err := k.apply(ctx); err != nil {
		return err
	}
	failed := []error{n.health.set(all.services)}
	// A provider that keeps its connections no more may be no change of the table.
	if changed > 0 || !n.forwarded || n.version != all.version {
		n.log.WithField("services", len(all.services)).WithField("changes", changed).Debug("Service load balancing programmed on this node")
		err := forgetStale(all.services)
		n.forwarded, n.version = err == nil, all.version
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
