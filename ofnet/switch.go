package ofnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/errs"
)

// SwitchConfig says which bridge a Switch keeps.
type SwitchConfig struct {
	Name   string // of the bridge, for logs
	Target string // unix:PATH of the bridge's management socket, or tcp:HOST:PORT
	Log    logrus.FieldLogger
	// Dial opens the OpenFlow channel; nil for the real one.
	Dial func(ctx context.Context, target string) (Channel, error)
}

// Channel is what a Switch needs of an OpenFlow connection.
type Channel interface {
	// Dump calls yield for every flow the bridge has.
	Dump(ctx context.Context, yield func(of.Flow)) error
	// Apply carries the changes out in order, all or none. The error is a *Refused
	// when the bridge did not accept one of them.
	Apply(ctx context.Context, changes []FlowChange) error
	Done() <-chan struct{}
	Close() error
}

// FlowChange adds (or replaces) or removes one flow.
type FlowChange struct {
	Flow   of.Flow
	Remove bool
}

// Refused is the error of a change that the bridge did not accept.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the bridge's own error.
func (r *Refused) Unwrap() error { return r.Err }

// bundleSize bounds the flows sent in one bundle, and so the memory both ends hold
// and the time other work waits.
const bundleSize = 4096

// body is a flow without its key.
type body struct {
	do         of.Instructions
	cookie     uint64
	idle, hard uint16
	flags      uint16
}

func sameBody(a, b body) bool {
	return a.do == b.do && a.idle == b.idle && a.hard == b.hard && (a.cookie^b.cookie)&cookieIdentity == 0
}

// Switch keeps the flows of one bridge equal to what its users Set. Create it with
// NewSwitch. All methods are safe for concurrent use.
type Switch struct {
	cfg  SwitchConfig
	kick chan struct{}

	mu       sync.Mutex
	flows    *delta.Map[of.FlowKey, body]
	holders  map[of.FlowKey]string   // whose value is the desired one
	rivals   map[of.FlowKey][]string // further owners that want the key; normally empty
	owners   map[string][]of.Flow
	refused  map[of.FlowKey]error
	complete bool // flows without an owner may go
	synced   bool // the actual side is the bridge's content
	lastErr  error
	changed  chan struct{}
	sent     uint64 // flow-mods sent since start
	connects uint64
}

// NewSwitch makes a Switch; nothing is sent before Run.
func NewSwitch(cfg SwitchConfig) *Switch {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	if cfg.Dial == nil {
		cfg.Dial = dialBridge
	}
	return &Switch{
		cfg: cfg, kick: make(chan struct{}, 1), changed: make(chan struct{}),
		flows: delta.New[of.FlowKey](sameBody), holders: map[of.FlowKey]string{}, rivals: map[of.FlowKey][]string{},
		owners: map[string][]of.Flow{}, refused: map[of.FlowKey]error{},
	}
}

// Set makes flows the ones owner wants, instead of those it wanted before. Two owners
// that want the same key share it: the first one's value counts until it lets go.
func (s *Switch) Set(owner string, flows []of.Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.owners[owner]
	if len(flows) == 0 {
		delete(s.owners, owner)
	} else {
		s.owners[owner] = flows
	}
	keep := make(map[of.FlowKey]struct{}, len(flows))
	for _, f := range flows {
		keep[f.Key()] = struct{}{}
		s.claim(owner, f)
	}
	for _, f := range old {
		if _, ok := keep[f.Key()]; !ok {
			s.letGo(owner, f.Key())
		}
	}
	s.wake()
}

// Remove forgets an owner and its flows.
func (s *Switch) Remove(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.owners[owner]
	if !ok {
		return
	}
	delete(s.owners, owner)
	for _, f := range old {
		s.letGo(owner, f.Key())
	}
	s.wake()
}

func (s *Switch) claim(owner string, f of.Flow) {
	key := f.Key()
	holder, held := s.holders[key]
	if held && holder != owner {
		for _, r := range s.rivals[key] {
			if r == owner {
				return
			}
		}
		s.rivals[key] = append(s.rivals[key], owner)
		return
	}
	s.holders[key] = owner
	delete(s.refused, key)
	s.flows.SetDesired(key, bodyOf(f))
}

// letGo gives a key to the next owner that wants it, or to nobody.
func (s *Switch) letGo(owner string, key of.FlowKey) {
	rivals := s.rivals[key]
	for i, r := range rivals {
		if r == owner {
			rivals = append(rivals[:i:i], rivals[i+1:]...)
			break
		}
	}
	if s.holders[key] == owner {
		delete(s.holders, key)
		delete(s.refused, key)
		if len(rivals) == 0 {
			s.flows.DeleteDesired(key)
		} else {
			heir := rivals[0]
			rivals = rivals[1:]
			for _, f := range s.owners[heir] {
				if f.Key() == key {
					s.holders[key] = heir
					s.flows.SetDesired(key, bodyOf(f))
				}
			}
		}
	}
	if len(rivals) == 0 {
		delete(s.rivals, key)
	} else {
		s.rivals[key] = rivals
	}
}

func bodyOf(f of.Flow) body {
	return body{do: f.Instructions, cookie: f.Cookie, idle: f.IdleTimeout, hard: f.HardTimeout, flags: f.Flags}
}

// Complete says that all owners have been set: flows nobody wants are removed from
// now on. Until then they stay, because they may belong to somebody still to come.
func (s *Switch) Complete() {
	s.mu.Lock()
	s.complete = true
	s.mu.Unlock()
	s.wake()
}

func (s *Switch) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Run keeps the bridge until ctx ends; the flows stay.
func (s *Switch) Run(ctx context.Context) error {
	const slowest = 500 * time.Millisecond // a restarted switch must not wait long
	wait := 20 * time.Millisecond
	log := s.cfg.Log.WithField("bridge", s.cfg.Name)
	for ctx.Err() == nil {
		synced, err := s.serve(ctx, log)
		s.mu.Lock()
		said := s.lastErr != nil && err != nil && s.lastErr.Error() == err.Error()
		s.synced, s.lastErr = false, err
		s.broadcast()
		s.mu.Unlock()
		if ctx.Err() != nil {
			break
		}
		if synced {
			wait = 20 * time.Millisecond
		}
		if synced || !said {
			log.WithError(err).Warn("no OpenFlow channel; is ovs-vswitchd running? retrying")
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, slowest)
	}
	return ctx.Err()
}

// serve lives as long as one connection.
func (s *Switch) serve(ctx context.Context, log logrus.FieldLogger) (synced bool, err error) {
	ch, err := s.cfg.Dial(ctx, s.cfg.Target)
	if err != nil {
		return false, err
	}
	defer ch.Close()
	if err := s.read(ctx, ch); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.synced, s.lastErr = true, nil
	s.connects++
	differences := s.flows.LenPending()
	s.broadcast()
	s.mu.Unlock()
	log.WithField("differences", differences).Info("OpenFlow channel up")

	var retry <-chan time.Time
	for {
		failed, err := s.push(ctx, ch, log)
		if err != nil {
			return true, err
		}
		retry = nil
		if failed {
			retry = time.After(2 * time.Second)
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-ch.Done():
			return true, errors.New("the switch closed the channel")
		case <-s.kick:
		case <-retry:
			s.mu.Lock()
			clear(s.refused)
			s.mu.Unlock()
		}
	}
}

// read takes what the bridge has as the actual side. A flow that is as desired shares
// the desired one's memory.
func (s *Switch) read(ctx context.Context, ch Channel) error {
	s.mu.Lock()
	s.flows.ForgetActual()
	s.synced = false
	s.mu.Unlock()
	err := ch.Dump(ctx, func(f of.Flow) {
		s.mu.Lock()
		defer s.mu.Unlock()
		have := bodyOf(f)
		if want, ok := s.flows.Desired(f.Key()); ok && want.do == have.do {
			have.do = want.do
		}
		s.flows.SetActual(f.Key(), have)
	})
	if err != nil {
		return fmt.Errorf("dump the flows of %s: %w", s.cfg.Name, err)
	}
	return nil
}

// push sends what is pending, removals first, and reports whether something was
// refused. A change the bridge refuses does not hold the others up.
func (s *Switch) push(ctx context.Context, ch Channel, log logrus.FieldLogger) (failed bool, err error) {
	for {
		batch := s.pending(bundleSize)
		if len(batch) == 0 {
			s.mu.Lock()
			failed = len(s.refused) > 0
			s.broadcast()
			s.mu.Unlock()
			return failed, nil
		}
		if err := s.send(ctx, ch, batch, log); err != nil {
			return false, err
		}
	}
}

func (s *Switch) send(ctx context.Context, ch Channel, batch []delta.Change[of.FlowKey, body], log logrus.FieldLogger) error {
	changes := make([]FlowChange, len(batch))
	for i, c := range batch {
		changes[i] = FlowChange{Flow: flowOf(c.Key, c.Want), Remove: c.Op == delta.Remove}
	}
	err := ch.Apply(ctx, changes)
	var refused *Refused
	switch {
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent += uint64(len(batch))
		for _, c := range batch {
			s.flows.Applied(c)
		}
		return nil
	case !errors.As(err, &refused):
		return err
	case len(batch) == 1:
		log.WithError(err).WithField("flow", changes[0].Flow.String()).Error("the switch refuses a flow")
		s.mu.Lock()
		s.refused[batch[0].Key] = err
		s.mu.Unlock()
		return nil
	}
	// Find the culprit by halves, so that the rest gets through.
	half := len(batch) / 2
	if err := s.send(ctx, ch, batch[:half], log); err != nil {
		return err
	}
	return s.send(ctx, ch, batch[half:], log)
}

func flowOf(key of.FlowKey, b body) of.Flow {
	return of.Flow{
		Table: key.Table, Priority: key.Priority, Match: key.Match, Cookie: b.cookie,
		IdleTimeout: b.idle, HardTimeout: b.hard, Flags: b.flags, Instructions: b.do,
	}
}

// pending lists up to n changes, removals before additions.
func (s *Switch) pending(n int) []delta.Change[of.FlowKey, body] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var removals, others []delta.Change[of.FlowKey, body]
	for c := range s.flows.Pending() {
		if len(removals)+len(others) >= n {
			break
		}
		if _, no := s.refused[c.Key]; no {
			continue
		}
		if c.Op != delta.Remove {
			others = append(others, c)
		} else if s.complete {
			removals = append(removals, c)
		}
	}
	return append(removals, others...)
}

func (s *Switch) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Settled waits until everything owner wants is in the bridge. It fails at once when
// the bridge refuses one of the flows.
func (s *Switch) Settled(ctx context.Context, owner string) error {
	for {
		s.mu.Lock()
		ok, err := s.settled(owner)
		changed, why := s.changed, s.lastErr
		s.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if why == nil {
				why = ctx.Err()
			}
			return errs.New(errs.Unavailable, "flows of %s are not in bridge %s: %w", owner, s.cfg.Name, why)
		}
	}
}

func (s *Switch) settled(owner string) (bool, error) {
	if !s.synced {
		return false, nil
	}
	for _, f := range s.owners[owner] {
		if err := s.refused[f.Key()]; err != nil {
			return false, errs.New(errs.Internal, "bridge %s refuses a flow of %s: %w", s.cfg.Name, owner, err)
		}
		if _, pending := s.flows.PendingFor(f.Key()); pending {
			return false, nil
		}
	}
	return true, nil
}

// Ready returns nil when the bridge has everything and nothing else, or what is amiss.
func (s *Switch) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.synced && s.lastErr != nil:
		return errs.New(errs.Unavailable, "no OpenFlow channel: %w", s.lastErr)
	case !s.synced:
		return errs.New(errs.Unavailable, "no OpenFlow channel yet")
	case len(s.refused) > 0:
		return errs.New(errs.Internal, "%d flows are refused by the switch", len(s.refused))
	case s.complete && s.flows.LenPending() > 0:
		return errs.New(errs.Unavailable, "%d flows are still to be sent", s.flows.LenPending())
	}
	return nil
}

// SwitchStatus is a Switch in numbers.
type SwitchStatus struct {
	Connected bool
	Connects  uint64 // channels since start
	Desired   int    // flows wanted
	Actual    int    // flows in the bridge
	Pending   int
	Refused   int
	Sent      uint64 // flow-mods since start
	Error     string `json:",omitempty"`
}

// Status returns a Switch in numbers.
func (s *Switch) Status() SwitchStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SwitchStatus{
		Connected: s.synced, Connects: s.connects, Desired: s.flows.Len(), Actual: s.flows.LenActual(),
		Pending: s.flows.LenPending(), Refused: len(s.refused), Sent: s.sent,
	}
	if s.lastErr != nil {
		st.Error = s.lastErr.Error()
	}
	return st
}

// Flows lists the wanted flows, for inspection and tests.
func (s *Switch) Flows() []of.Flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]of.Flow, 0, s.flows.Len())
	for key, b := range s.flows.AllDesired() {
		out = append(out, flowOf(key, b))
	}
	return out
}
