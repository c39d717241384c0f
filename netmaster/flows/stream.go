package flows

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
)

// stall is how long the merged backlog waits for a host that says nothing.
const stall = 3 * time.Second

// stream is one answer. All but the sources is done by one goroutine.
type stream struct {
	service *Service
	filter  flowapi.Filter
	sees    Sees
	send    func(e flowapi.Event, more bool) error

	sources sync.WaitGroup
	begun   map[string]bool // hosts that are, or were, asked
	told    map[string]bool // hosts that are known to be down
	queues  []*queue        // of the hosts that have not told everything recorded
	common  chan said       // of those that have
	ended   chan string     // hosts whose source has ended
	running int             // sources that have not

	joiner *joiner
	tail   *tail // nil: records are sent at once
	live   bool
	all    bool // that everything recorded has been told was said
}

func newStream(s *Service, f flowapi.Filter, sees Sees, send func(flowapi.Event, bool) error) *stream {
	st := &stream{
		service: s, filter: f, sees: sees, send: send,
		begun: map[string]bool{}, told: map[string]bool{}, common: make(chan said), ended: make(chan string),
	}
	if f.Limit > 0 {
		st.tail = newTail(f.Limit)
	}
	st.joiner = newJoiner(st.record)
	return st
}

// begin asks all hosts that are not asked yet.
func (st *stream) begin(ctx context.Context) error {
	there, away, err := st.service.hosts(ctx)
	switch {
	case err != nil && st.live: // looked for again soon
		return nil
	case err != nil:
		return err
	}
	for _, host := range away {
		if st.told[host] || st.begun[host] {
			continue
		}
		st.told[host] = true
		missing := unregistered(host)
		if err := st.send(flowapi.Event{Missing: &missing}, st.live); err != nil {
			return err
		}
	}
	for _, host := range there {
		if !st.begun[host] {
			st.begun[host], st.joiner.asked[host] = true, true
			st.ask(ctx, host)
		}
	}
	return nil
}

// ask starts a source.
func (st *stream) ask(ctx context.Context, host string) {
	s := &source{host: host, agents: st.service.agents, filter: forAgents(st.filter), out: make(chan said, queued)}
	st.sources.Go(func() { s.run(ctx) })
	q := &queue{host: host, in: s.out}
	if st.running++; st.live {
		st.follow(ctx, q)
		return
	}
	st.queues = append(st.queues, q)
}

// follow moves what a host says from now on into the common channel.
func (st *stream) follow(ctx context.Context, q *queue) {
	st.sources.Go(func() {
		for next := range q.in {
			select {
			case st.common <- next:
			case <-ctx.Done():
				return
			}
		}
		select {
		case st.ended <- q.host:
		case <-ctx.Done():
		}
	})
}

// backlog tells what was recorded before the request, by time, and then that this is all.
func (st *stream) backlog(ctx context.Context) error {
	st.joiner.ordered = true
	waiting := slices.Clone(st.queues)
	for len(waiting) > 0 {
		if err := st.fill(ctx, waiting); err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(q *queue) bool { return q.head == nil })
		if len(waiting) == 0 {
			break
		}
		q := slices.MinFunc(waiting, func(a, b *queue) int { return a.head.Start.Compare(b.head.Start) })
		if err := st.joiner.release(startedBefore(q.head.Start.Add(-apart))); err != nil {
			return err
		}
		if err := st.joiner.add(q.host, *q.head, time.Now()); err != nil {
			return err
		}
		q.head = nil
	}
	st.joiner.ordered = false
	if err := st.joiner.release(func(*connection) bool { return true }); err != nil {
		return err
	}
	late := slices.ContainsFunc(st.queues, func(q *queue) bool { return q.late })
	if !late || st.filter.Follow {
		if err := st.flush(); err != nil {
			return err
		}
	}
	st.live = true
	for _, q := range st.queues {
		st.follow(ctx, q)
	}
	st.queues = nil
	return nil
}

// fill takes from each host its next record. Those that are silent for too long have none.
func (st *stream) fill(ctx context.Context, queues []*queue) error {
	patience, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	for _, q := range queues {
		if err := q.fill(ctx, patience.Done(), st.aside); err != nil {
			return err
		}
	}
	return nil
}

// aside takes what a host says in its backlog that is no record.
func (st *stream) aside(e flowapi.Event) error {
	if e.Gap == nil && e.Missing == nil {
		return nil
	}
	return st.send(e, true)
}

// flush sends what was kept for being among the newest, and that everything recorded has
// been told.
func (st *stream) flush() error {
	if st.tail != nil {
		for _, r := range st.tail.records() {
			if err := st.send(flowapi.Event{Record: &r}, true); err != nil {
				return err
			}
		}
		st.tail = nil
	}
	st.all = true
	return st.send(flowapi.Event{Heartbeat: &flowapi.Heartbeat{Time: time.Now().UTC(), Live: true}}, false)
}

// rest tells what comes, until all sources have ended.
func (st *stream) rest(ctx context.Context) error {
	tick, look := time.NewTicker(hold/4), time.NewTicker(newcomers)
	defer tick.Stop()
	defer look.Stop()
	spoken := time.Now()
	for st.running > 0 || st.filter.Follow {
		var err error
		select {
		case s := <-st.common:
			spoken = time.Now()
			err = st.take(s)
		case <-st.ended:
			st.running--
		case now := <-tick.C:
			if err = st.joiner.release(heardBefore(now.Add(-hold))); err == nil && now.Sub(spoken) >= Heartbeat {
				spoken = now
				err = st.send(flowapi.Event{Heartbeat: &flowapi.Heartbeat{Time: now.UTC()}}, false)
			}
		case <-look.C:
			if st.filter.Follow {
				err = st.begin(ctx)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	if err := st.joiner.release(func(*connection) bool { return true }); err != nil || st.all {
		return err
	}
	return st.flush()
}

// take takes what a host says after its backlog.
func (st *stream) take(s said) error {
	switch {
	case s.event.Record != nil:
		return st.joiner.add(s.host, *s.event.Record, time.Now())
	case s.event.Gap != nil, s.event.Missing != nil:
		return st.send(s.event, false)
	}
	return nil
}

// record sends a record, as far as it is shown and asked for.
func (st *stream) record(r flowapi.Record) error {
	r, ok := Scope(r, st.sees)
	if !ok || !st.filter.Match(&r) {
		return nil
	}
	if st.tail != nil {
		st.tail.add(r)
		return nil
	}
	return st.send(flowapi.Event{Record: &r}, !st.live)
}
