package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/footprint"
)

// agentsVariable has an agents' process know what it is to run: an agentsConfig.
const agentsVariable = "CONTIV_SCALE_AGENTS"

// agentsConfig says which agents one process runs.
type agentsConfig struct {
	Store     string // etcd | consul
	Endpoints []string
	First     int // number of the first host
	Hosts     int
	Full      bool
	// Together is how many read the store at the same time at the start.
	Together int
}

// question is a line on the standard input of an agents' process, answer the one on its output.
type (
	question struct {
		// Revisions are to be reached by all agents before there is an answer; ascending.
		Revisions []int64
		// Forget drops what is known of the time before.
		Forget bool
		// Shrink gives memory back first, as an agent does once a burst of changes is over.
		Shrink bool
	}
	answer struct {
		Seen []int64 // by revision, when the last agent has seen it, ns since 1970
		Sent []int64 // the same of what the last full agent has sent to its switch
		// Work is, by full agent and revision, how long it took from seeing to having sent, in ns.
		Work     []int64
		Flows    int   // wanted by the first full agent
		Messages int64 // that it has sent
	}
)

// hostName names host i, from 1 on.
func hostName(i int) string { return fmt.Sprintf("h%05d", i) }

// hostAddress is the address of host i, for tunnels and for other daemons.
func hostAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{172, 20, byte(i >> 8), byte(i)}) }

// process are the agents of one process.
type process struct {
	lights []*light
	fulls  []*full
	turns  chan struct{}
	log    logrus.FieldLogger
}

// serveAgents runs agents until the input ends.
func serveAgents(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var c agentsConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("%s: %w", agentsVariable, err)
	}
	if c.Full {
		debug.SetGCPercent(30) // as netplugin
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.ErrorLevel)
	p := &process{log: log, turns: make(chan struct{}, max(1, c.Together))}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.Hosts {
		p.add(ctx, g, c, c.First+i)
	}
	g.Go(func() error {
		defer stop()
		return p.answerAll(ctx, in, out)
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// add adds the agent of host i.
func (p *process) add(ctx context.Context, g *errgroup.Group, c agentsConfig, i int) {
	me := cluster.Host{Label: hostName(i), CtrlIP: hostAddress(i), VTEP: hostAddress(i), VXLANPort: 4789}
	begin := func(run func(context.Context) error, seen *history) {
		g.Go(func() error {
			select {
			case p.turns <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			go func() { _ = seen.await(ctx, 1); <-p.turns }()
			return run(ctx)
		})
	}
	store, err := open.Store(cliconf.Store{Kind: c.Store, Endpoints: c.Endpoints})
	if err != nil {
		g.Go(func() error { return err })
		return
	}
	context.AfterFunc(ctx, func() { _ = store.Close() })
	master := cluster.NewMaster(nil)
	reports := cluster.ReporterConfig{
		Host: me, Version: "scale", Instance: time.Now().UnixNano(), Store: store, Log: p.log,
		Health: func() []string { return nil },
	}
	if c.Full {
		f := newFull(me.Label, me.VTEP, store, master, p.log)
		p.fulls = append(p.fulls, f)
		reports.Agent, reports.Driver = f.agent, f.bridges
		begin(f.run, &f.seen)
	} else {
		l := &light{}
		p.lights = append(p.lights, l)
		reports.Agent, reports.Driver = l, l
		begin(func(ctx context.Context) error { return l.run(ctx, store) }, &l.seen)
	}
	g.Go(func() error { return master.Follow(ctx, store) })
	g.Go(func() error { return cluster.Register(ctx, master, me, p.log) })
	g.Go(func() error { return cluster.NewReporter(reports).Run(ctx) })
}

// answerAll answers questions until there are no more.
func (p *process) answerAll(ctx context.Context, in io.Reader, out io.Writer) error {
	ask, tell := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q question
		if err := ask.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := p.answer(ctx, q)
		if err != nil {
			return err
		}
		if err := tell.Encode(a); err != nil {
			return err
		}
	}
}

func (p *process) answer(ctx context.Context, q question) (answer, error) {
	var a answer
	seen, sent := p.histories()
	for _, h := range append(seen, sent...) {
		for _, r := range q.Revisions {
			if err := h.await(ctx, r); err != nil {
				return a, err
			}
		}
	}
	for _, r := range q.Revisions {
		a.Seen = append(a.Seen, last(seen, r))
		if len(sent) > 0 {
			a.Sent = append(a.Sent, last(sent, r))
		}
		for _, f := range p.fulls {
			a.Work = append(a.Work, f.sent.at(r)-f.seen.at(r))
		}
	}
	if len(p.fulls) > 0 {
		a.Flows, a.Messages = p.fulls[0].bridges.Summary().Flows, p.fulls[0].bridges.messages.Load()
	}
	if q.Forget {
		for _, h := range append(seen, sent...) {
			h.forget()
		}
	}
	if q.Shrink {
		if _, err := footprint.Shrink(); err != nil {
			return a, err
		}
	}
	return a, nil
}

// histories are those of what agents have seen, and of what full ones have sent.
func (p *process) histories() (seen, sent []*history) {
	for _, l := range p.lights {
		seen = append(seen, &l.seen)
	}
	for _, f := range p.fulls {
		seen, sent = append(seen, &f.seen), append(sent, &f.sent)
	}
	return seen, sent
}

// last is when the last one has reached a revision.
func last(all []*history, revision int64) int64 {
	var at int64
	for _, h := range all {
		at = max(at, h.at(revision))
	}
	return at
}
