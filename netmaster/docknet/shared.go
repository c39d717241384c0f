package docknet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

// Engine is what is needed from the Docker Engine; see dockerd.Client.
type Engine interface {
	Networks(ctx context.Context) ([]dockerd.Network, error)
	CreateNetwork(ctx context.Context, n dockerd.Network) (string, error)
	RemoveNetwork(ctx context.Context, id string) error
}

// Source provides the networks and groups.
type Source interface {
	Topology() (t docknet.Topology, aci bool)
	// Changed returns a channel that is closed when they may have changed.
	Changed() <-chan struct{}
}

// Config configures a Shared.
type Config struct {
	Log    logrus.FieldLogger
	Store  objdb.Store
	Fence  objdb.Cmp // holds while this netmaster leads
	Engine Engine
	Driver string // the name the Engines know the plugin by
	// RetryMin is the first pause after a failure, doubled up to RetryMax; 0 means 1 s
	// and 30 s.
	RetryMin, RetryMax time.Duration
}

// Shared keeps the docker networks that all Engines share equal to the networks and
// groups, through the Engine of this host.
type Shared struct {
	cfg    Config
	source Source
	names  *delta.Map[string, dockerd.Network]
	kick   chan struct{} // asks for a pass

	mu           sync.Mutex
	begun, ended uint64
	next         signal.Signal    // broadcast when ended grows
	failed       map[string]error // of the last pass, by name
	away         error            // why the last pass could not ask the Engine
	unwanted     map[string]bool  // names that are about to go
}

// New returns a Shared that does nothing yet; see Run.
func New(cfg Config, source Source) *Shared {
	if cfg.RetryMin == 0 {
		cfg.RetryMin = time.Second
	}
	if cfg.RetryMax == 0 {
		cfg.RetryMax = 30 * time.Second
	}
	return &Shared{
		cfg: cfg, source: source, names: delta.New[string](docknet.Same), kick: make(chan struct{}, 1),
		unwanted: map[string]bool{},
	}
}

// Run drives the Engine until ctx ends.
func (s *Shared) Run(ctx context.Context) {
	pauses := retry.New(s.cfg.RetryMin, s.cfg.RetryMax)
	for ctx.Err() == nil {
		changed := s.source.Changed()
		var due <-chan time.Time
		if s.pass(ctx) {
			pauses.Reset()
		} else {
			due = time.After(pauses.Next())
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-s.kick:
		case <-due:
		}
	}
}

// Settle waits until the docker network of a place has been tried once, and returns why
// it could not be made. That no Engine runs where netmaster does is no failure.
func (s *Shared) Settle(ctx context.Context, p state.NetworkRef) error {
	return s.settle(ctx, docknet.Name(p))
}

// Release removes the docker network of a place that is about to go. It fails when
// containers are attached, and then the place must stay.
func (s *Shared) Release(ctx context.Context, p state.NetworkRef) error {
	name := docknet.Name(p)
	s.mu.Lock()
	s.unwanted[name] = true
	s.mu.Unlock()
	err := s.settle(ctx, name)
	if err != nil {
		s.Keep(p)
	}
	return err
}

// Keep takes Release back: the place stays.
func (s *Shared) Keep(p state.NetworkRef) {
	s.mu.Lock()
	delete(s.unwanted, docknet.Name(p))
	s.mu.Unlock()
	s.wake()
}

func (s *Shared) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // a pass is about to begin
	}
}

func (s *Shared) settle(ctx context.Context, name string) error {
	s.mu.Lock()
	mine := s.begun + 1
	s.mu.Unlock()
	s.wake()
	for {
		s.mu.Lock()
		ended, next, err, away := s.ended, s.next.Next(), s.failed[name], s.away
		s.mu.Unlock()
		if ended >= mine {
			if away != nil {
				s.cfg.Log.WithError(away).WithField("docknet", name).Warn("the Docker Engine of this host is unavailable; the docker network is created when it answers")
			}
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return errs.New(errs.Timeout, "the Docker Engine has not answered in time about docker network %s: %w", name, ctx.Err())
		}
	}
}

// pass tries to settle every difference once and reports whether none is left.
func (s *Shared) pass(ctx context.Context) bool {
	s.mu.Lock()
	s.begun++
	t, aci := s.source.Topology()
	want := t.Wanted(s.cfg.Driver, aci)
	for name := range s.unwanted {
		if _, there := want[name]; !there {
			delete(s.unwanted, name) // it has gone
		}
		delete(want, name)
	}
	s.mu.Unlock()
	failed := map[string]error{}
	away := s.apply(ctx, want, failed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.away, s.ended = failed, away, s.begun
	s.next.Broadcast()
	return len(failed) == 0 && away == nil
}

// apply settles what it can and notes what it cannot. It returns an error when the
// Engine, or the store, does not answer.
func (s *Shared) apply(ctx context.Context, want map[string]dockerd.Network, failed map[string]error) error {
	list, err := s.cfg.Engine.Networks(ctx)
	if err != nil {
		return err
	}
	records := map[string]docknet.Record{}
	have := map[string]dockerd.Network{}
	for _, n := range list {
		w, wanted := want[n.Name]
		switch {
		case !docknet.SameDriver(n.Driver, s.cfg.Driver) && wanted:
			failed[n.Name] = errs.New(errs.Exists, "network name used by another driver: docker network %s has driver %s", n.Name, n.Driver)
			delete(want, n.Name)
		case !docknet.SameDriver(n.Driver, s.cfg.Driver) || !wanted && !docknet.Ours(n):
		default:
			have[n.Name] = n
			if wanted && docknet.Same(w, n) {
				note(records, w, n.ID)
			}
		}
	}
	s.names.ReplaceActual(have)
	s.names.ReplaceDesired(want)
	pending := map[string]delta.Change[string, dockerd.Network]{}
	for c := range s.names.Pending() {
		pending[c.Key] = c
	}
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		c := pending[name]
		id, err := s.change(ctx, c)
		if err != nil {
			failed[name] = err
			s.cfg.Log.WithError(err).WithField("docknet", name).Warn("cannot create, update or remove a docker network; retrying")
			if c.Op != delta.Add {
				note(records, c.Have, c.Have.ID) // it is still there
			}
			continue
		}
		s.names.Applied(c)
		if c.Op != delta.Remove {
			note(records, c.Want, id)
		}
		s.cfg.Log.WithFields(logrus.Fields{"docknet": name, "change": c.Op.String()}).Info("docker network is in sync")
	}
	return s.write(ctx, records)
}

func note(records map[string]docknet.Record, n dockerd.Network, id string) {
	if p, ok := docknet.OfOptions(n.Options); ok {
		n.ID = id
		records[docknet.Key(p)] = docknet.NewRecord(p, n)
	}
}

func (s *Shared) change(ctx context.Context, c delta.Change[string, dockerd.Network]) (id string, err error) {
	if c.Op != delta.Add {
		if err := s.cfg.Engine.RemoveNetwork(ctx, c.Have.ID); err != nil {
			return "", err
		}
	}
	if c.Op == delta.Remove {
		return "", nil
	}
	return s.cfg.Engine.CreateNetwork(ctx, c.Want)
}

// write makes the records in the store exactly want.
func (s *Shared) write(ctx context.Context, want map[string]docknet.Record) error {
	kvs, _, err := s.cfg.Store.List(ctx, docknet.Root)
	if err != nil {
		return fmt.Errorf("list the docker networks: %w", err)
	}
	records := delta.NewComparable[string, docknet.Record]()
	for _, kv := range kvs {
		var r docknet.Record
		_ = json.Unmarshal(kv.Value, &r) // what cannot be read is rewritten
		records.SetActual(strings.TrimPrefix(kv.Key, docknet.Root), r)
	}
	records.ReplaceDesired(want)
	for c := range records.Pending() {
		op := objdb.Delete(docknet.Root + c.Key)
		if c.Op != delta.Remove {
			value, err := json.Marshal(c.Want)
			if err != nil {
				return errs.Wrap(errs.Internal, err)
			}
			op = objdb.Put(docknet.Root+c.Key, value)
		}
		_, err := s.cfg.Store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{s.cfg.Fence}, Then: []objdb.Op{op}})
		if errors.Is(err, objdb.ErrCompareFailed) {
			return errs.New(errs.Unavailable, "not the leader any more, retry the request")
		}
		if err != nil {
			return fmt.Errorf("note docker network %s: %w", c.Key, err)
		}
		records.Applied(c)
	}
	return nil
}
