package ofnet

import (
	"context"
	"errors"
	"maps"

	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// SetLearned sets the tables in which the bridge learns flows itself. Learned flows stay in
// these tables and nowhere else: in a table that now has another meaning they would do
// harm, so after a change the bridge is read again if it has any.
func (s *Switch) SetLearned(tables ...uint8) {
	now := make(map[uint8]bool, len(tables))
	for _, t := range tables {
		now[t] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.Equal(s.learned, now) {
		return
	}
	before := len(s.learned)
	s.learned = now
	if s.reread != nil && (before > 0 || s.strays) {
		close(s.reread)
		s.reread = nil
	}
}

// Forget has the bridge remove tracked connections, once it has all wanted flows. Open
// vSwitch before 3.1 does not support that: there, connections end when they are idle.
func (s *Switch) Forget(connections ...*of.FlushCT) {
	if len(connections) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range connections {
		s.forget = append(s.forget, c)
	}
	s.wake()
}

func (s *Switch) flush(ctx context.Context, ch Channel, log logrus.FieldLogger) error {
	s.mu.Lock()
	all := s.forget
	s.forget = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	err := ch.Send(ctx, all)
	var no *Refused
	if errors.As(err, &no) {
		log.WithError(err).Warn("cannot delete single conntrack entries (needs Open vSwitch 3.1); connections to removed providers end when they are idle")
		return nil
	}
	if err != nil { // retried on the next connection
		s.mu.Lock()
		s.forget = append(all, s.forget...)
		s.mu.Unlock()
	}
	return err
}

// Counters calls yield for the counters of every flow whose cookie equals cookie in the
// bits of mask. It fails with Unavailable while there is no connection.
func (s *Switch) Counters(ctx context.Context, cookie, mask uint64, yield func(of.FlowStats)) error {
	s.mu.Lock()
	ch := s.channel
	s.mu.Unlock()
	if ch == nil {
		return errs.New(errs.Unavailable, "bridge %s has no OpenFlow connection", s.cfg.Name)
	}
	return ch.Stats(ctx, cookie, mask, yield)
}

// RuleHits sums up, by owner, the packets that rules have decided on: those that open
// connections, those evaluated again after a change, and those denied.
func (s *Switch) RuleHits(ctx context.Context) (map[string]of.Counter, error) {
	hits := map[string]of.Counter{}
	err := s.Counters(ctx, featurePolicy<<cookieFeatureShift, 0xff<<cookieFeatureShift, func(f of.FlowStats) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if owner, ok := s.flows.holders[f.Key()]; ok {
			sum := hits[owner]
			hits[owner] = of.Counter{Packets: sum.Packets + f.Packets, Bytes: sum.Bytes + f.Bytes}
		}
	})
	return hits, err
}
