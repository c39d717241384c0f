package flowlog

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/flowapi"
)

// Bounds of a log.
const (
	DefaultSize = 64 << 20  // bytes
	keep        = time.Hour // how long records stay at most

	joinFor     = time.Second // denials are joined
	mostJoining = 1 << 14     // denials that are being joined
	mostWaiting = 1 << 13     // denied packets that have not been looked at
	mostGaps    = 256
	gapFor      = time.Minute // gaps of one cause are joined
	sweepsEvery = time.Second
)

// Config configures a log.
type Config struct {
	Host string
	Size int              // bytes of records; 0: DefaultSize
	Now  func() time.Time // nil: the clock
	// PodAt, if set, names the pod of a tenant with an address, as namespace/name; empty: none.
	// It must not call the log.
	PodAt func(tenant string, a netip.Addr) string
	Log   logrus.FieldLogger
}

// Log is the log of one host. Create it with New.
type Log struct {
	cfg    Config
	names  *names
	denied chan drivers.Denied

	mu      sync.Mutex
	ring    *ring
	began   time.Time
	open    map[connection]*tracked
	joining map[denial]*joined
	gaps    []flowapi.Gap
	hits    hits
	readers map[*reader]struct{}
	stats   stats
}

// stats are counts since the start.
type stats struct {
	records uint64
	missed  uint64        // packets and records told as gaps
	slow    bool          // connections are read less often
	open    int           // connections at the last reading
	took    time.Duration // the last reading
}

// New makes a log, which does nothing before Run.
func New(cfg Config) *Log {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Size == 0 {
		cfg.Size = DefaultSize
	}
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	now := cfg.Now()
	return &Log{
		cfg: cfg, names: newNames(cfg.PodAt), denied: make(chan drivers.Denied, mostWaiting), began: now,
		// IDs go on growing after a restart.
		ring: newRing(cfg.Size, uint64(now.UnixNano())), open: map[connection]*tracked{}, joining: map[denial]*joined{},
		hits: hits{}, readers: map[*reader]struct{}{},
	}
}

// Apply takes in a batch of the state prefix.
func (l *Log) Apply(b objdb.Batch) { l.names.apply(b) }

// Declare and Withdraw take in what the driver is told of.
func (l *Log) Declare(o drivers.Object) { l.names.declare(o) }

// Withdraw takes back what has been declared.
func (l *Log) Withdraw(k drivers.Kind, id string) { l.names.withdraw(k, id) }

// Denied takes in a packet that was denied. It does not block.
func (l *Log) Denied(d drivers.Denied) {
	select {
	case l.denied <- d:
	default:
		l.gap(1, "denied packets came faster than they can be looked at")
	}
}

// Run keeps the log of the connections of a switch until ctx ends.
func (l *Log) Run(ctx context.Context, source drivers.Connections) error {
	var wg sync.WaitGroup
	wg.Go(func() { l.follow(ctx, source) })
	wg.Go(func() { l.countWithheld(ctx, source) })
	sweep := time.NewTicker(sweepsEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return ctx.Err()
		case d := <-l.denied:
			l.deny(d)
		case <-sweep.C:
			l.sweep()
		}
	}
}

// gap records that something was left out.
func (l *Log) gap(count uint64, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now().UTC()
	l.addGap(flowapi.Gap{Host: l.cfg.Host, From: now, To: now, Count: count, Why: why})
}

// addGap joins gaps of one cause. The caller holds mu.
func (l *Log) addGap(g flowapi.Gap) {
	l.stats.missed += g.Count
	for i := len(l.gaps) - 1; i >= 0; i-- {
		if old := &l.gaps[i]; old.Why == g.Why && g.To.Sub(old.From) < gapFor {
			old.To, old.Count = g.To, old.Count+g.Count
			if g.From.Before(old.From) {
				old.From = g.From
			}
			l.tell(func(r *reader) { r.addGap(g) })
			return
		}
	}
	if len(l.gaps) == mostGaps {
		l.gaps = append(l.gaps[:0], l.gaps[1:]...)
	}
	l.gaps = append(l.gaps, g)
	l.tell(func(r *reader) { r.addGap(g) })
}

// put appends a record. The caller holds mu.
func (l *Log) put(e entry) uint64 {
	for l.ring.len() >= l.ring.most {
		l.dropOldest()
	}
	n := l.ring.put(e)
	l.stats.records++
	l.changed(n)
	return n
}

// dropOldest makes room. The caller holds mu.
func (l *Log) dropOldest() {
	old := l.ring.at(l.ring.first)
	start, end := timeOf(old.start), timeOf(old.end)
	if end.IsZero() {
		end = l.cfg.Now().UTC()
	}
	if old.end == 0 || end.After(l.cfg.Now().Add(-keep)) {
		l.addGap(flowapi.Gap{Host: l.cfg.Host, From: start, To: end, Count: 1, Why: "the log is full: its oldest records made room (--flow-log-size)"})
	}
	l.ring.drop()
}

// changed tells readers that a record is new or has changed. The caller holds mu.
func (l *Log) changed(n uint64) {
	audited := false
	if e := l.ring.at(n); e != nil {
		audited = e.names.Value().audited
	}
	l.tell(func(r *reader) {
		if audited || !r.audited {
			r.add(n)
		}
	})
}

func (l *Log) tell(do func(*reader)) {
	for r := range l.readers {
		do(r)
	}
}

// sweep ends what is due and drops what is old.
func (l *Log) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	l.endJoined(now)
	oldest := now.Add(-keep).UnixNano()
	for l.ring.len() > 0 {
		if e := l.ring.at(l.ring.first); e.end == 0 || e.end > oldest {
			break
		}
		l.ring.drop()
	}
	for len(l.gaps) > 0 && l.gaps[0].To.UnixNano() < oldest {
		l.gaps = l.gaps[1:]
	}
	l.hits.forget(now)
}
