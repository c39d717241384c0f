package ofnet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// SwitchConfig configures a Switch.
type SwitchConfig struct {
	Name   string // of the bridge, for logs
	Target string // unix:PATH of the bridge's management socket, or tcp:HOST:PORT
	Log    logrus.FieldLogger
	// DNS is called with the queries of containers, if the pipeline has DNS. It must not
	// block, and must make sure that every query is answered, passed or dropped. Nil
	// passes all.
	DNS func(*DNSQuery)
	// Denied, if set, is called with packets that were denied, if the pipeline has a flow
	// log. It must not block.
	Denied func(*DeniedPacket)
	// Pushed, if set, is called with the number of changes sent together, and how long
	// the bridge took to apply them. It must not block.
	Pushed func(changes int, took time.Duration)
	// Connected, if set, is called for every connection. It must not block.
	Connected func()
	// Dial opens the OpenFlow connection; nil for the default.
	Dial func(ctx context.Context, target string) (Channel, error)
}

// Channel is what a Switch needs from an OpenFlow connection.
type Channel interface {
	// Dump calls yield for every flow in the bridge.
	Dump(ctx context.Context, yield func(of.Flow)) error
	// Stats calls yield for every flow whose cookie equals cookie in the bits of mask.
	Stats(ctx context.Context, cookie, mask uint64, yield func(of.FlowStats)) error
	DumpGroups(ctx context.Context) ([]of.Group, error)
	DumpMeters(ctx context.Context) ([]of.Meter, error)
	// Apply applies flow-mods and group-mods in order, all or none. The error is a
	// *Refused if the bridge has rejected one of them.
	Apply(ctx context.Context, mods []of.Message) error
	// Send is Apply for what cannot be part of a bundle, one by one.
	Send(ctx context.Context, mods []of.Message) error
	Done() <-chan struct{}
	Close() error
}

// Refused is the error of a change that the bridge has rejected.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the bridge's own error.
func (r *Refused) Unwrap() error { return r.Err }

// Switch keeps the flows of one bridge equal to what its users Set. Create it with
// NewSwitch. All methods are safe for concurrent use.
type Switch struct {
	cfg  SwitchConfig
	kick chan struct{}

	counts *packetIns

	mu       sync.Mutex
	owners   map[string]Program
	flows    *desiredSet[of.FlowKey, body]
	groups   *desiredSet[uint32, of.Group]
	meters   *desiredSet[uint32, of.Meter]
	complete bool           // flows without owner may be removed
	holds    holds          // except these
	synced   bool           // the actual side equals the bridge's content
	learned  map[uint8]bool // tables whose flows the bridge learns itself
	forget   []of.Message   // tracked connections to remove once the flows are right
	channel  Channel        // nil while there is none
	reread   chan struct{}  // closed when the bridge must be read again
	strays   bool           // the bridge has learned flows in other tables than learned
	lastErr  error
	changed  signal.Signal
	sent     uint64 // changes sent since start
	sets     uint64 // calls of Set since start
	carried  uint64 // as many of them have been carried out, or rejected
	connects uint64
	losses   losses
}

// NewSwitch creates a Switch; nothing is sent before Run.
func NewSwitch(cfg SwitchConfig) *Switch {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	counts := &packetIns{}
	if cfg.Dial == nil {
		cfg.Dial = agentParts{dns: cfg.DNS, denied: cfg.Denied, counts: counts}.dial
	}
	s := &Switch{
		counts: counts, cfg: cfg, kick: make(chan struct{}, 1),
		owners: map[string]Program{}, holds: holds{}, flows: newDesiredSet[of.FlowKey](sameBody),
		groups: newDesiredSet[uint32](same[of.Group]), meters: newDesiredSet[uint32](same[of.Meter]),
	}
	s.flows.hash = hashFlow
	return s
}

// Set replaces what owner wants by p. Owners that want the same flow, group or meter share
// it: the value of the first one is used until it releases it.
func (s *Switch) Set(owner string, p Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.owners[owner]
	if !had && p.Empty() {
		return
	}
	s.sets++
	if p.Empty() {
		delete(s.owners, owner)
	} else {
		s.owners[owner] = p
		s.holds.note(p)
	}
	s.meters.replace(owner, meterIDs(old.Meters), pairs(p.Meters, meterID, itself))
	s.groups.replace(owner, groupIDs(old.Groups), pairs(p.Groups, groupID, itself))
	s.flows.replace(owner, flowKeys(old.Flows), pairs(p.Flows, of.Flow.Key, func(f of.Flow) body {
		b := bodyOf(f)
		b.late = p.Late
		return b
	}))
	s.wake()
}

// Remove removes an owner and what it wanted.
func (s *Switch) Remove(owner string) { s.Set(owner, Program{}) }

// RemoveAll removes all owners.
func (s *Switch) RemoveAll() {
	s.mu.Lock()
	owners := slices.Collect(maps.Keys(s.owners))
	s.mu.Unlock()
	for _, o := range owners {
		s.Remove(o)
	}
}

// InitialSyncDone says that the initial sync is done: from now on flows without owner are
// removed. Until then they stay, because their owners may still be set.
func (s *Switch) InitialSyncDone() {
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

// Run updates the bridge until ctx ends; the flows stay.
func (s *Switch) Run(ctx context.Context) error {
	again := retry.New(20*time.Millisecond, 500*time.Millisecond) // a restarted switch must not wait long
	log := s.cfg.Log.WithField("bridge", s.cfg.Name)
	for ctx.Err() == nil {
		synced, err := s.serve(ctx, log)
		s.mu.Lock()
		said := s.lastErr != nil && err != nil && s.lastErr.Error() == err.Error()
		s.synced, s.lastErr, s.channel = false, err, nil
		s.broadcast()
		s.mu.Unlock()
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errReread) {
			continue
		}
		if synced {
			again.Reset()
		}
		if synced || !said {
			log.WithError(err).Warn("no OpenFlow connection to the bridge; check that ovs-vswitchd is running; retrying")
		}
		again.Wait(ctx)
	}
	return ctx.Err()
}

// errReread ends a connection because the bridge must be read again.
var errReread = errors.New("the numbers of the tables have changed")

// serve runs as long as one connection.
func (s *Switch) serve(ctx context.Context, log logrus.FieldLogger) (synced bool, err error) {
	ch, err := s.cfg.Dial(ctx, s.cfg.Target)
	if err != nil {
		return false, err
	}
	defer ch.Close()
	reread := make(chan struct{})
	s.mu.Lock()
	s.reread = reread
	s.mu.Unlock()
	if err := s.read(ctx, ch); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.synced, s.lastErr, s.channel = true, nil, ch
	s.connects++
	lost := s.losses.end(time.Now())
	differences := s.countPending()
	s.broadcast()
	s.mu.Unlock()
	log.WithField("differences", differences).Info("OpenFlow connection established")
	if s.cfg.Connected != nil {
		s.cfg.Connected()
	}
	if lost {
		log.WithField("restarts", s.Status().Restarts).Warn("ovs-vswitchd restarted without its flows; programming them again")
	}

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
			return true, errors.New("the switch closed the connection")
		case <-reread:
			return true, errReread
		case <-s.kick:
		case <-retry:
			s.mu.Lock()
			clear(s.flows.refused)
			clear(s.groups.refused)
			clear(s.meters.refused)
			s.mu.Unlock()
		}
	}
}

func (s *Switch) broadcast() {
	s.changed.Broadcast()
}

// Settled waits until everything that owner wants is in the bridge. It fails immediately if
// the bridge rejects one of the flows.
func (s *Switch) Settled(ctx context.Context, owner string) error {
	return s.await(ctx, func() (bool, error) { return s.settled(owner) }, fmt.Sprintf("flows of %s are not in bridge %s", owner, s.cfg.Name))
}

// await waits until done, which it asks after each change while it holds s.mu. missing is what the
// error says when ctx ends.
func (s *Switch) await(ctx context.Context, done func() (bool, error), missing string) error {
	for {
		s.mu.Lock()
		ok, err := done()
		changed, why := s.changed.Next(), s.lastErr
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
			return errs.New(errs.Unavailable, "%s: %w", missing, why)
		}
	}
}

func (s *Switch) settled(owner string) (bool, error) {
	if !s.synced {
		return false, nil
	}
	p := s.owners[owner]
	for _, settle := range []func() (bool, error){
		func() (bool, error) { return allSettled(s.meters, meterIDs(p.Meters)) },
		func() (bool, error) { return allSettled(s.groups, groupIDs(p.Groups)) },
		func() (bool, error) { return allSettled(s.flows, flowKeys(p.Flows)) },
	} {
		ok, err := settle()
		if err != nil {
			return false, errs.New(errs.Internal, "bridge %s rejects flows of %s: %w", s.cfg.Name, owner, err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// CaughtUp waits until everything that was set before the call has been sent to the bridge,
// but for what it rejects.
func (s *Switch) CaughtUp(ctx context.Context) error {
	s.mu.Lock()
	want := s.sets
	s.mu.Unlock()
	return s.await(ctx, func() (bool, error) { return s.synced && s.carried >= want, nil }, fmt.Sprintf("bridge %s does not have all flows", s.cfg.Name))
}

func allSettled[K comparable, V any](w *desiredSet[K, V], keys iter.Seq[K]) (bool, error) {
	for key := range keys {
		if ok, err := w.settled(key); !ok {
			return false, err
		}
	}
	return true, nil
}

// Ready returns nil when the bridge has everything and nothing else, or else what is wrong.
func (s *Switch) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connected(); err != nil {
		return err
	}
	switch {
	case s.countRefused() > 0:
		return errs.New(errs.Internal, "the bridge rejects %d changes, for example: %w", s.countRefused(), s.aRefusal())
	case s.complete && s.countPending() > s.countHeld():
		return errs.New(errs.Unavailable, "%d changes have not been sent yet", s.countPending())
	}
	return nil
}

// Serving returns nil while the bridge accepts changes, even if some are still being sent.
func (s *Switch) Serving() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected()
}

// connected returns why there is no connection to the bridge. The caller holds s.mu.
func (s *Switch) connected() error {
	switch {
	case s.synced:
		return nil
	case s.lastErr != nil:
		return errs.New(errs.Unavailable, "no OpenFlow connection: %w", s.lastErr)
	}
	return errs.New(errs.Unavailable, "no OpenFlow connection yet")
}

// Flushed waits until the bridge has everything that has been set, and nothing else. When
// ctx ends, the error is that of Ready.
func (s *Switch) Flushed(ctx context.Context) error {
	for {
		s.mu.Lock()
		changed := s.changed.Next()
		s.mu.Unlock()
		err := s.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// SwitchStatus is the state of a Switch in numbers.
type SwitchStatus struct {
	Connected bool
	Connects  uint64 // connections since start
	// Restarts counts how often the bridge has come back without its flows since start,
	// as when ovs-vswitchd was restarted; RestartedAt is the last time.
	Restarts    uint64
	RestartedAt time.Time `json:",omitzero"`
	Desired     int       // flows wanted
	Digest      uint64    // checksum of the flows wanted; the round in their cookies does not count
	Actual      int       // flows in the bridge
	Groups      int       // in the bridge
	Meters      int       // in the bridge
	Pending     int       // flows, groups and meters that differ
	Refused     int
	Sent        uint64 // changes since start
	Malformed   uint64 // packets to the agent that it dropped because they are malformed
	// Other packets to the agent: name queries, neighbor solicitations, and packets to
	// reject, and packets that were denied.
	Queries, Solicitations, Rejections, Denials uint64
	Error                                       string `json:",omitempty"`
}

// Status returns the state in numbers.
func (s *Switch) Status() SwitchStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SwitchStatus{
		Connected: s.synced, Connects: s.connects, Desired: s.flows.diff.Len(), Digest: s.flows.digest, Actual: s.flows.diff.LenActual(),
		Groups: s.groups.diff.LenActual(), Meters: s.meters.diff.LenActual(),
		Restarts: s.losses.count, RestartedAt: s.losses.at, Pending: s.countPending(), Refused: s.countRefused(), Sent: s.sent, Malformed: s.counts.malformed.Load(),
		Queries: s.counts.queries.Load(), Solicitations: s.counts.solicitations.Load(), Rejections: s.counts.rejections.Load(), Denials: s.counts.denials.Load(),
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
	out := make([]of.Flow, 0, s.flows.diff.Len())
	for key, b := range s.flows.diff.AllDesired() {
		out = append(out, flowOf(key, b))
	}
	return out
}
