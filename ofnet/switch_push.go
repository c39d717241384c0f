package ofnet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/delta"
)

// bundleSize limits the messages per bundle, and so the memory at both ends and the time
// that other work waits.
const bundleSize = 4096

// lastMeter is the largest id of a meter that flows can refer to; those above are virtual
// (OpenFlow 1.3 section 7.3.4.4).
const lastMeter = 0xffff0000

// change is a difference to send to the bridge.
type change interface {
	mod() of.Message
	applied(*Switch)
	refused(*Switch, error)
}

type (
	flowChange  delta.Change[of.FlowKey, body]
	groupChange delta.Change[uint32, of.Group]
	meterChange delta.Change[uint32, of.Meter]
)

func (c flowChange) mod() of.Message {
	if c.Op == delta.Remove {
		return of.DeleteFlow(c.Key)
	}
	return of.AddFlow(flowOf(c.Key, c.Want))
}

func (c groupChange) mod() of.Message {
	switch c.Op {
	case delta.Remove:
		return of.DeleteGroup(c.Key)
	case delta.Update:
		return of.ModifyGroup(c.Want)
	}
	return of.AddGroup(c.Want)
}

func (c meterChange) mod() of.Message {
	switch c.Op {
	case delta.Remove:
		return of.DeleteMeter(c.Key)
	case delta.Update:
		return of.ModifyMeter(c.Want)
	}
	return of.AddMeter(c.Want)
}

func (c flowChange) applied(s *Switch)  { s.flows.diff.Applied(delta.Change[of.FlowKey, body](c)) }
func (c groupChange) applied(s *Switch) { s.groups.diff.Applied(delta.Change[uint32, of.Group](c)) }
func (c meterChange) applied(s *Switch) { s.meters.diff.Applied(delta.Change[uint32, of.Meter](c)) }

func (c flowChange) refused(s *Switch, err error)  { s.flows.refused[c.Key] = err }
func (c groupChange) refused(s *Switch, err error) { s.groups.refused[c.Key] = err }
func (c meterChange) refused(s *Switch, err error) { s.meters.refused[c.Key] = err }

// read loads the bridge's content as the actual side. A flow that equals the desired one
// shares its memory.
func (s *Switch) read(ctx context.Context, ch Channel) error {
	s.mu.Lock()
	s.synced, s.strays, s.carried = false, false, 0
	s.losses.begin(s.flows.diff.LenActual())
	s.flows.diff.ForgetActual()
	s.groups.diff.ForgetActual()
	s.meters.diff.ForgetActual()
	s.mu.Unlock()
	groups, err := ch.DumpGroups(ctx)
	if err != nil {
		return fmt.Errorf("dump the groups of %s: %w", s.cfg.Name, err)
	}
	meters, err := ch.DumpMeters(ctx)
	if err != nil {
		return fmt.Errorf("dump the meters of %s: %w", s.cfg.Name, err)
	}
	s.mu.Lock()
	for _, g := range groups {
		s.groups.diff.SetActual(g.ID, g)
	}
	for _, m := range meters {
		if m.ID <= lastMeter {
			s.meters.diff.SetActual(m.ID, m)
		}
	}
	s.mu.Unlock()
	err = ch.Dump(ctx, func(f of.Flow) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.Cookie&cookieLearned != 0 {
			if s.learned[f.Table] {
				return
			}
			s.strays = true
		}
		s.losses.saw(f.Cookie)
		have := bodyOf(f)
		if want, ok := s.flows.diff.Desired(f.Key()); ok && want.do == have.do {
			have.do = want.do
		}
		s.flows.diff.SetActual(f.Key(), have)
	})
	if err != nil {
		return fmt.Errorf("dump the flows of %s: %w", s.cfg.Name, err)
	}
	return nil
}

// push sends what is pending, and reports whether something was rejected. What a flow
// refers to is sent before it and removed after it: meters, which cannot be part of a
// bundle, then bundles of groups, flows and groups, then meters again. A change that the
// bridge rejects does not hold up the others.
func (s *Switch) push(ctx context.Context, ch Channel, log logrus.FieldLogger) (failed bool, err error) {
	for {
		bundle, batch := s.pending(bundleSize)
		if len(batch) == 0 {
			if err := s.flush(ctx, ch, log); err != nil {
				return false, err
			}
			s.mu.Lock()
			failed = s.countRefused() > 0
			s.broadcast()
			s.mu.Unlock()
			return failed, nil
		}
		carry := ch.Send
		if bundle {
			carry = ch.Apply
		}
		if err := s.send(ctx, carry, batch, log); err != nil {
			return false, err
		}
	}
}

func (s *Switch) send(ctx context.Context, carry func(context.Context, []of.Message) error, batch []change, log logrus.FieldLogger) error {
	mods := make([]of.Message, len(batch))
	for i, c := range batch {
		mods[i] = c.mod()
	}
	began := time.Now()
	err := carry(ctx, mods)
	var no *Refused
	switch {
	case err == nil:
		if s.cfg.Pushed != nil {
			s.cfg.Pushed(len(batch), time.Since(began))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent += uint64(len(batch))
		for _, c := range batch {
			c.applied(s)
		}
		return nil
	case !errors.As(err, &no):
		return err
	case len(batch) == 1:
		log.WithError(err).WithField("change", of.Text(mods[0])).Error("the bridge rejected a change; retrying in 2s")
		s.mu.Lock()
		batch[0].refused(s, err)
		s.mu.Unlock()
		return nil
	}
	// Find the rejected change by bisection, so that the rest gets through.
	half := len(batch) / 2
	if err := s.send(ctx, carry, batch[:half], log); err != nil {
		return err
	}
	return s.send(ctx, carry, batch[half:], log)
}

// pending lists up to n changes that are sent together, in order: all in one bundle, or one
// meter. Nothing is removed before the initial sync, because its owner may still be set.
func (s *Switch) pending(n int) (bundle bool, batch []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.meters.open(false) {
		return false, []change{meterChange(c)}
	}
	batch = gather[groupChange](batch, n, s.groups.open(false))
	if s.complete {
		batch = gather[flowChange](batch, n, only(s.flows.open(true), s.holds.freeFlow))
	}
	for _, late := range []bool{false, true} {
		batch = gather[flowChange](batch, n, only(s.flows.open(false), func(c delta.Change[of.FlowKey, body]) bool { return c.Want.late == late }))
	}
	if len(batch) == 0 {
		s.carried = s.sets // what is left is removed, or was rejected
	}
	if !s.complete || len(batch) >= n {
		return true, batch
	}
	if batch = gather[groupChange](batch, n, only(s.groups.open(true), s.holds.freeGroup)); len(batch) > 0 {
		return true, batch
	}
	for c := range s.meters.open(true) {
		return false, []change{meterChange(c)}
	}
	return true, nil
}

// only yields the elements that satisfy ok.
func only[T any](all iter.Seq[T], ok func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range all {
			if ok(v) && !yield(v) {
				return
			}
		}
	}
}

// gather appends changes of one kind until there are n.
func gather[C interface {
	~struct {
		Op         delta.Op
		Key        K
		Want, Have V
	}
	change
}, K comparable, V any](batch []change, n int, open iter.Seq[delta.Change[K, V]]) []change {
	for c := range open {
		if len(batch) >= n {
			break
		}
		batch = append(batch, C(c))
	}
	return batch
}

func (s *Switch) countRefused() int {
	return len(s.flows.refused) + len(s.groups.refused) + len(s.meters.refused)
}

// aRefusal returns why the switch has rejected one of the rejected changes.
func (s *Switch) aRefusal() error {
	for _, why := range []iter.Seq[error]{maps.Values(s.flows.refused), maps.Values(s.groups.refused), maps.Values(s.meters.refused)} {
		for err := range why {
			return err
		}
	}
	return nil
}

func (s *Switch) countPending() int {
	return s.flows.diff.LenPending() + s.groups.diff.LenPending() + s.meters.diff.LenPending()
}
