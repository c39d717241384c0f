package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/retry"
)

// figures are what was measured at one size, by the key of a row.
type figures map[string]string

// measurement is one size of cluster while it is measured.
type measurement struct {
	*testbed
	size
	figures
	next int // number of the next endpoint
}

// measure brings a cluster up and measures it.
func measure(ctx context.Context, o options, s size) (figures, error) {
	t, err := up(ctx, o)
	if err != nil {
		return nil, err
	}
	defer t.down()
	m := &measurement{testbed: t, size: s, figures: figures{}, next: s.Endpoints}
	began := time.Now()
	if err := t.load(ctx, s); err != nil {
		return nil, fmt.Errorf("%w; %s", err, t.logs())
	}
	m.figures["load"] = seconds(time.Since(began))
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"start of all agents", m.join},
		{"changes for few hosts", m.few},
		{"changes for all hosts", m.all},
		{"changes at a rate", m.atRate},
		{"return of the store", m.storeReturns},
		{"change of leader", m.leaderChanges},
		{"start of one agent", m.oneAgent},
	} {
		say("%s", step.what)
		if err := step.do(ctx); err != nil {
			return m.figures, fmt.Errorf("%s: %w; %s", step.what, err, t.logs())
		}
	}
	return m.figures, nil
}

// join starts all agents but the last one.
func (m *measurement) join(ctx context.Context) error {
	began := time.Now()
	n := m.Agents - 1
	full, half := min(m.Full, n), (n-min(m.Full, n)+1)/2
	for _, part := range []struct {
		first, n int
		full     bool
	}{{1, full, true}, {1 + full, half, false}, {1 + full + half, n - full - half, false}} {
		if part.n <= 0 {
			continue
		}
		a, err := m.startAgents(part.first, part.n, part.full)
		if err != nil {
			return err
		}
		m.agents = append(m.agents, a)
	}
	revision, err := m.change(ctx)
	if err != nil {
		return err
	}
	a, err := m.question(ctx, question{Revisions: []int64{revision}, Shrink: true})
	if err != nil {
		return err
	}
	m.figures["join"] = seconds(time.Since(began))
	m.figures["flows"] = fmt.Sprint(a.Flows)
	return m.masterMemory("master-idle")
}

// change makes a change for few hosts, and returns its revision.
func (m *measurement) change(ctx context.Context) (int64, error) {
	m.next++
	return m.createEndpoint(ctx, m.size, m.next)
}

// spans are how long changes took, from the request on, to have been seen by the last agent
// and sent by the last full one, and how long these took from the one to the other.
type spans struct{ answered, seen, sent, work []time.Duration }

// note adds what agents said of a change that was requested at a time.
func (s *spans) note(requested time.Time, a answer, i int) {
	s.seen = append(s.seen, time.Unix(0, a.Seen[i]).Sub(requested))
	s.sent = append(s.sent, time.Unix(0, a.Sent[i]).Sub(requested))
}

// propagate makes changes one after the other, each when all have the one before.
func (m *measurement) propagate(ctx context.Context, n int, change func(ctx context.Context) (int64, error)) (s spans, err error) {
	for range n {
		requested := time.Now()
		revision, err := change(ctx)
		if err != nil {
			return s, err
		}
		s.answered = append(s.answered, time.Since(requested))
		a, err := m.question(ctx, question{Revisions: []int64{revision}, Forget: true})
		if err != nil {
			return s, err
		}
		s.note(requested, a, 0)
		for _, w := range a.Work {
			s.work = append(s.work, time.Duration(w))
		}
	}
	return s, nil
}

func (m *measurement) set(key string, s spans) {
	m.figures[key+"-answered"], m.figures[key+"-seen"], m.figures[key+"-sent"], m.figures[key+"-work"] = quantiles(s.answered), quantiles(s.seen), quantiles(s.sent), quantiles(s.work)
}

// few measures changes of endpoints, in tenants on few hosts.
func (m *measurement) few(ctx context.Context) error {
	s, err := m.propagate(ctx, m.o.changes, m.change)
	m.set("few", s)
	return err
}

// all measures changes of a rule of the tenant that has an endpoint on every host.
func (m *measurement) all(ctx context.Context) error {
	n := 0
	s, err := m.propagate(ctx, m.o.changes, func(ctx context.Context) (int64, error) {
		n++
		_, ch, err := client.PutChange(ctx, m.client, contivmodel.RuleKind(), &contivmodel.Rule{
			TenantName: shared, PolicyName: shared, RuleID: fmt.Sprint(n), Direction: contivmodel.DirectionIn, Action: contivmodel.ActionDeny, Protocol: "tcp", Port: n, Priority: 20,
		})
		return ch.Revision, err
	})
	m.set("all", s)
	return err
}

// atRate measures changes that come at a rate: endpoints that come and go.
func (m *measurement) atRate(ctx context.Context) error {
	type made struct {
		revision  int64
		requested time.Time
	}
	var (
		mu   sync.Mutex
		done []made
	)
	before, err := m.masters[0].cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	due := make(chan int)
	g, gctx := errgroup.WithContext(ctx)
	for range clients {
		g.Go(func() error {
			for i := range due {
				for _, change := range []func(context.Context, size, int) (int64, error){m.createEndpoint, m.deleteEndpoint} {
					requested := time.Now()
					revision, err := change(gctx, m.size, i)
					if err != nil {
						return err
					}
					mu.Lock()
					done = append(done, made{revision, requested})
					mu.Unlock()
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(due)
		for i := range m.o.rate * m.o.seconds / 2 {
			select {
			case <-time.After(time.Until(began.Add(time.Duration(i) * 2 * time.Second / time.Duration(m.o.rate)))):
			case <-gctx.Done():
				return gctx.Err()
			}
			m.next++
			select {
			case due <- m.next:
			case <-gctx.Done():
				return gctx.Err()
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := m.masters[0].cpu()
	if err != nil {
		return err
	}
	m.figures["rate"] = fmt.Sprintf("%.0f", float64(len(done))/took.Seconds())
	m.figures["rate-cpu"] = fmt.Sprintf("%.2f", (after-before).Seconds()/took.Seconds())
	if err := m.masterMemory("rate-memory"); err != nil {
		return err
	}
	slices.SortFunc(done, func(a, b made) int { return int(a.revision - b.revision) })
	q := question{Forget: true}
	for _, d := range done {
		q.Revisions = append(q.Revisions, d.revision)
	}
	a, err := m.question(ctx, q)
	if err != nil {
		return err
	}
	var s spans
	for i, d := range done {
		s.note(d.requested, a, i)
	}
	for _, w := range a.Work {
		s.work = append(s.work, time.Duration(w))
	}
	m.figures["rate-behind"] = seconds(max(0, time.Unix(0, slices.Max(a.Seen)).Sub(began.Add(took))))
	m.set("rate", s)
	return nil
}

func (m *measurement) masterMemory(key string) error {
	n, err := m.masters[0].memory("VmRSS")
	m.figures[key] = mebibytes(n)
	return err
}

// storeReturns takes the store away for a while: netmaster with it, where it is inside.
func (m *measurement) storeReturns(ctx context.Context) error {
	victim, again := m.masters[0], func() error { return m.startMaster(ctx, 0) }
	if m.store != nil {
		victim, again = m.store, func() error { return m.startStore(ctx) }
	}
	victim.kill()
	if !retry.Pause(ctx, m.o.away) {
		return ctx.Err()
	}
	began := time.Now()
	if err := again(); err != nil {
		return err
	}
	return m.converge(ctx, "store", began)
}

// leaderChanges ends the netmaster that leads, where there is another one.
func (m *measurement) leaderChanges(ctx context.Context) error {
	if m.o.store == cliconf.StoreEmbedded {
		return nil // it goes with its store
	}
	began := time.Now()
	m.masters[0].kill()
	err := m.converge(ctx, "leader", began)
	m.masters[0], m.masters[1] = m.masters[1], nil
	return err
}

// converge measures from a time on until a change made now is answered, all agents have it,
// and netmaster knows that they have.
func (m *measurement) converge(ctx context.Context, key string, began time.Time) error {
	revision, err := m.change(ctx)
	if err != nil {
		return err
	}
	m.figures[key+"-answered"] = seconds(time.Since(began))
	a, err := m.question(ctx, question{Revisions: []int64{revision}, Forget: true})
	if err != nil {
		return err
	}
	m.figures[key+"-seen"] = seconds(time.Unix(0, max(slices.Max(a.Seen), slices.Max(a.Sent))).Sub(began))
	for {
		left, err := m.client.Applied(ctx, client.Change{Revision: revision}, time.Second)
		if err != nil {
			return err
		}
		if left.Hosts >= m.Agents-1 && len(left.Missing) == 0 {
			break
		}
		if time.Since(began) > 2*time.Minute {
			m.figures[key+"-known"] = fmt.Sprintf("%d of %d after 120 s", left.Hosts-len(left.Missing), m.Agents-1)
			return nil
		}
	}
	m.figures[key+"-known"] = seconds(time.Since(began))
	return nil
}

// oneAgent starts the last agent, as a full one, in a process of its own.
func (m *measurement) oneAgent(ctx context.Context) error {
	revision, err := m.change(ctx)
	if err != nil {
		return err
	}
	a, err := m.startAgents(m.Agents, 1, true)
	if err != nil {
		return err
	}
	defer a.kill()
	got, err := a.question(ctx, question{Revisions: []int64{revision}, Shrink: true})
	if err != nil {
		return err
	}
	m.figures["start-seen"] = seconds(time.Unix(0, got.Seen[0]).Sub(a.began))
	m.figures["start"] = seconds(time.Unix(0, got.Sent[0]).Sub(a.began))
	used, err := a.cpu()
	if err != nil {
		return err
	}
	m.figures["start-cpu"] = seconds(used)
	for key, line := range map[string]string{"agent-memory": "VmRSS", "agent-peak": "VmHWM"} {
		n, err := a.memory(line)
		if err != nil {
			return err
		}
		m.figures[key] = mebibytes(n)
	}
	return nil
}
