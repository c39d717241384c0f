package flowlog

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of readers.
const (
	mostReaders = 64
	mostPending = 1 << 13 // records that a reader has not taken yet
	atOnce      = 256     // records looked at under one lock
	heartbeat   = 15 * time.Second
	whyTooSlow  = "the reader was slower than records came"
)

// reader is one that follows the log. The log's mu protects it.
type reader struct {
	audited bool     // what goes to the audit file is all that it wants
	pending []uint64 // numbers of records that are new or have changed
	gaps    []flowapi.Gap
	missed  uint64
	since   time.Time // of the first that it missed
	wake    chan struct{}
}

func (r *reader) add(n uint64) {
	if k := len(r.pending); k > 0 && r.pending[k-1] == n {
		return
	}
	if len(r.pending) >= mostPending {
		if r.missed++; r.missed == 1 {
			r.since = time.Now()
		}
	} else {
		r.pending = append(r.pending, n)
	}
	r.kick()
}

func (r *reader) addGap(g flowapi.Gap) {
	if k := len(r.gaps); k > 0 && r.gaps[k-1].Why == g.Why {
		r.gaps[k-1].To, r.gaps[k-1].Count = g.To, r.gaps[k-1].Count+g.Count
	} else if k < mostGaps {
		r.gaps = append(r.gaps, g)
	}
	r.kick()
}

func (r *reader) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stream calls emit with the records that a filter selects, then, if it follows, with those
// that come or change until ctx ends or emit fails. flush is called whenever there is
// nothing more to emit for now.
func (l *Log) Stream(ctx context.Context, f flowapi.Filter, emit func(*flowapi.Event) error, flush func() error) error {
	after, err := numberAfter(f.After)
	if err != nil {
		return err
	}
	var r *reader
	if f.Follow {
		if r, err = l.subscribe(f.Audited); err != nil {
			return err
		}
		defer l.unsubscribe(r)
	}
	if err := l.recorded(f, after, emit); err != nil {
		return err
	}
	if err := emit(&flowapi.Event{Heartbeat: &flowapi.Heartbeat{Time: l.cfg.Now().UTC(), Live: true}}); err != nil {
		return err
	}
	if err := flush(); err != nil || !f.Follow {
		return err
	}
	return l.live(ctx, r, f, emit, flush)
}

func numberAfter(id string) (uint64, error) {
	if id == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil || len(id) != 16 {
		return 0, errs.New(errs.Invalid, "after %.40q: expected the ID of a record", id)
	}
	return n + 1, nil
}

func (l *Log) subscribe(audited bool) (*reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.readers) >= mostReaders {
		return nil, errs.New(errs.Unavailable, "the flow log has %d readers already; end one", mostReaders)
	}
	r := &reader{audited: audited, wake: make(chan struct{}, 1)}
	l.readers[r] = struct{}{}
	return r, nil
}

func (l *Log) unsubscribe(r *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, r)
}

// recorded emits what there is.
func (l *Log) recorded(f flowapi.Filter, from uint64, emit func(*flowapi.Event) error) error {
	l.mu.Lock()
	gaps := slices.Clone(l.gaps)
	from, to := max(from, l.ring.first), l.ring.next
	l.mu.Unlock()
	for _, g := range gaps {
		if g.To.Before(f.Since) {
			continue
		}
		if err := emit(&flowapi.Event{Gap: &g}); err != nil {
			return err
		}
	}
	if f.Limit > 0 {
		from = l.newest(f, from, to)
	}
	for from < to {
		for _, rec := range l.matching(f, from, min(from+atOnce, to)) {
			if err := emit(&flowapi.Event{Record: rec}); err != nil {
				return err
			}
		}
		from += atOnce
	}
	return nil
}

// matching returns the records with numbers from up to to that a filter selects.
func (l *Log) matching(f flowapi.Filter, from, to uint64) (out []*flowapi.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := from; n < to; n++ {
		if e := l.ring.at(n); e != nil {
			if rec := e.record(n, l.cfg.Host); f.Match(rec) {
				out = append(out, rec)
			}
		}
	}
	return out
}

// newest is the number from which on there are as many records as the filter's limit.
func (l *Log) newest(f flowapi.Filter, from, to uint64) uint64 {
	for left := f.Limit; to > from; {
		start := max(from, to-min(atOnce, to))
		some := l.matching(f, start, to)
		if len(some) >= left {
			n, _ := strconv.ParseUint(some[len(some)-left].ID, 16, 64)
			return n
		}
		left, to = left-len(some), start
	}
	return from
}

// live emits what comes and what changes.
func (l *Log) live(ctx context.Context, r *reader, f flowapi.Filter, emit func(*flowapi.Event) error, flush func() error) error {
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if err := emit(&flowapi.Event{Heartbeat: &flowapi.Heartbeat{Time: l.cfg.Now().UTC()}}); err != nil {
				return err
			}
		case <-r.wake:
			events := l.take(r, f)
			for i := range events {
				if err := emit(&events[i]); err != nil {
					return err
				}
			}
			if len(events) == 0 {
				continue
			}
		}
		if err := flush(); err != nil {
			return err
		}
		beat.Reset(heartbeat)
	}
}

// take returns what a reader has not had yet.
func (l *Log) take(r *reader, f flowapi.Filter) (out []flowapi.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := r.pending[:min(len(r.pending), atOnce)]
	for _, n := range some {
		e := l.ring.at(n)
		if e == nil {
			r.missed++
			continue
		}
		if rec := e.record(n, l.cfg.Host); f.Match(rec) {
			out = append(out, flowapi.Event{Record: rec})
		}
	}
	if r.pending = r.pending[len(some):]; len(r.pending) > 0 {
		r.kick()
	} else {
		r.pending = nil
	}
	for i := range r.gaps {
		g := r.gaps[i]
		out = append(out, flowapi.Event{Gap: &g})
	}
	r.gaps = nil
	if r.missed > 0 {
		now := l.cfg.Now().UTC()
		from := r.since
		if from.IsZero() {
			from = now
		}
		out = append(out, flowapi.Event{Gap: &flowapi.Gap{Host: l.cfg.Host, From: from.UTC(), To: now, Count: r.missed, Why: whyTooSlow}})
		r.missed, r.since = 0, time.Time{}
	}
	return out
}
