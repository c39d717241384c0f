// Package hostgc removes the endpoints of hosts that are gone for good, and so frees their
// addresses.
//
// A host that is down for a while keeps them: its containers may still run. Before
// anything is removed, the store must say at that moment that the host is not registered,
// and it must have been down for the whole grace period, which is counted from a record
// that outlives changes of leader. Besides, this leader must have seen it down for a while
// itself, and its agent must not report.
//
// A host of a Kubernetes cluster is gone for good when its Node has been deleted. Then
// the grace period does not apply, but all other conditions do.
package hostgc

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
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Intent is what a Collector needs of package intent.
type Intent interface {
	// Hosts returns what is stored of each host, by label.
	Hosts(ctx context.Context) (map[string]cluster.Known, error)
	// EndpointsOf returns the ids of the endpoints that are homed on a host, sorted.
	EndpointsOf(host string) []string
	// RemoveEndpoint removes an endpoint; kind NotFound: there is none.
	RemoveEndpoint(ctx context.Context, id string) error
}

// Nodes reports which Nodes of Kubernetes exist.
type Nodes interface {
	// Gone reports whether a Node of that name certainly does not exist.
	Gone(ctx context.Context, name string) bool
	// Changed returns a channel that is closed when a Node is added or deleted.
	Changed() <-chan struct{}
}

// Config is what a Collector needs besides the intent.
type Config struct {
	Log     logrus.FieldLogger
	Store   objdb.Store
	Fence   objdb.Cmp // holds while this netmaster leads
	Members *cluster.Members
	// Grace is how long a host may be down before its endpoints are removed; 0 means
	// DefaultGrace.
	Grace time.Duration
	Nodes Nodes // nil: hosts are in no Kubernetes cluster
}

// Collector watches hosts that are down, for one term of the leader.
type Collector struct {
	cfg    Config
	intent Intent
	down   downHosts

	checking sync.Mutex // held while hosts are checked
}

// New returns a Collector that does nothing before Run.
func New(cfg Config, intent Intent) *Collector {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	return &Collector{cfg: cfg, intent: intent, down: downHosts{since: map[string]time.Time{}, seen: map[string]time.Time{}}}
}

// Begin implements reconcile.Loop; no change of an object concerns hosts.
func (*Collector) Begin(context.Context, reconcile.Change) (reconcile.Pending, error) {
	return nil, nil
}

// Hosts returns what is stored of each host, by label, and since when it is down.
func (c *Collector) Hosts(ctx context.Context) (map[string]cluster.Known, error) {
	hosts, err := c.intent.Hosts(ctx)
	for label, known := range hosts {
		if since, _, down := c.down.get(label); down {
			known.Gone, known.CleanUp = since, since.Add(c.cfg.Grace)
			hosts[label] = known
		}
	}
	return hosts, err
}

// DefaultGrace is how long a host may be down before its endpoints are removed.
const DefaultGrace = 24 * time.Hour

// downRoot holds one record for each host that is down.
const downRoot = state.OperRoot + "netmaster/absent/"

// Interval of checks, and how long a leader must see a host down before it acts.
const (
	slowestLook = 30 * time.Second
	fastestLook = 20 * time.Millisecond
	longestSeen = 3 * objdb.ServiceTTL
	removals    = 64 // at once: they share transactions, and leave room for others
)

// downRecord is the record under downRoot.
type downRecord struct {
	Since time.Time `json:"since"` // when a leader first missed the host
}

// downHosts is which hosts are down.
type downHosts struct {
	mu    sync.Mutex
	since map[string]time.Time // by label, as recorded
	seen  map[string]time.Time // by label: since when this leader has missed it
}

func (a *downHosts) get(label string) (since, seen time.Time, down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, down = a.since[label]
	return since, a.seen[label], down
}

func (a *downHosts) set(label string, since, seen time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since[label], a.seen[label] = since, seen
}

func (a *downHosts) remove(label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, label)
	delete(a.seen, label)
}

func (a *downHosts) labels() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.since))
}

// Run records which hosts are down, and removes the orphans of those that stay down, until
// ctx ends.
func (c *Collector) Run(ctx context.Context) {
	tick := time.NewTicker(min(max(c.cfg.Grace/20, fastestLook), slowestLook))
	defer tick.Stop()
	loaded := false
	for {
		var nodes <-chan struct{}
		if c.cfg.Nodes != nil {
			nodes = c.cfg.Nodes.Changed()
		}
		var err error
		if !loaded {
			err = c.load(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = c.check(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.WithError(err).Warn("cannot check for hosts that are down; retrying")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-nodes:
		}
	}
}

// load reads what the previous leader has recorded.
func (c *Collector) load(ctx context.Context) error {
	kvs, _, err := c.cfg.Store.List(ctx, downRoot)
	if err != nil {
		return fmt.Errorf("read which hosts are down: %w", err)
	}
	now := time.Now()
	for _, kv := range kvs {
		var rec downRecord
		if json.Unmarshal(kv.Value, &rec) != nil || rec.Since.After(now) { // unreadable, or by a clock that was ahead
			rec.Since = now
		}
		c.down.set(strings.TrimPrefix(kv.Key, downRoot), rec.Since, now)
	}
	return nil
}

// check compares the hosts there should be with those that are registered.
func (c *Collector) check(ctx context.Context) error {
	c.checking.Lock()
	defer c.checking.Unlock()
	registered, known := c.cfg.Members.Agents()
	if !known {
		return nil
	}
	hosts, err := c.intent.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, label := range c.down.labels() {
		_, here := registered[label]
		if _, exists := hosts[label]; here || !exists {
			if err := c.recordUp(ctx, label); err != nil {
				return err
			}
			if here {
				c.cfg.Log.WithField("host", label).Info("host is up again and keeps its endpoints")
			}
		}
	}
	now := time.Now()
	for _, label := range slices.Sorted(maps.Keys(hosts)) {
		if _, here := registered[label]; here {
			continue
		}
		since, seen, down := c.down.get(label)
		if !down {
			err = c.recordDown(ctx, label, now)
		}
		graceOver := down && now.Sub(since) >= c.cfg.Grace && now.Sub(seen) >= min(c.cfg.Grace, longestSeen)
		if err == nil && (graceOver || c.nodeGone(ctx, hosts[label].Node)) {
			_, err = c.removeHost(ctx, label)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodeGone reports whether a host was a Kubernetes Node that has been deleted. node is
// empty for a host that never was one.
func (c *Collector) nodeGone(ctx context.Context, node string) bool {
	return node != "" && c.cfg.Nodes != nil && c.cfg.Nodes.Gone(ctx, node)
}

func downKey(label string) string { return downRoot + label }

func (c *Collector) recordDown(ctx context.Context, label string, now time.Time) error {
	value, err := json.Marshal(downRecord{Since: now.UTC()})
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	if err := c.fenced(ctx, objdb.Put(downKey(label), value)); err != nil {
		return fmt.Errorf("record that host %s is down: %w", label, err)
	}
	c.down.set(label, now, now)
	c.cfg.Log.WithField("host", label).WithField("grace", c.cfg.Grace.String()).
		Info("host is down; its endpoints are removed when the grace period ends")
	return nil
}

func (c *Collector) recordUp(ctx context.Context, label string) error {
	if err := c.fenced(ctx, objdb.Delete(downKey(label))); err != nil {
		return fmt.Errorf("record that host %s is up: %w", label, err)
	}
	c.down.remove(label)
	return nil
}

// fenced applies operations outside the model, if this leader still leads.
func (c *Collector) fenced(ctx context.Context, ops ...objdb.Op) error {
	_, err := c.cfg.Store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{c.cfg.Fence}, Then: ops})
	if errors.Is(err, objdb.ErrCompareFailed) {
		return errs.New(errs.Unavailable, "not the leader any more, retry the request")
	}
	return err
}

// mayRun returns why a host that seems to be down must keep its endpoints, or nil. It reads
// the store, not a cache of it.
func (c *Collector) mayRun(ctx context.Context, label string) error {
	kvs, _, err := c.cfg.Store.List(ctx, state.ServiceRoot+clusterapi.AgentService+"/")
	if err != nil {
		return fmt.Errorf("read the registry: %w", err)
	}
	for _, kv := range kvs {
		var info objdb.ServiceInfo
		if json.Unmarshal(kv.Value, &info) == nil && info.Hostname == label {
			return errs.New(errs.InUse, "host %s is registered", label)
		}
	}
	if c.cfg.Members.Reporting(label) {
		return errs.New(errs.InUse, "host %s is not registered, but its agent reports", label)
	}
	return nil
}

// removeHost removes the endpoints of a host that is gone, their operational records and
// the host's own record, and returns the number of endpoints. If it is interrupted, the
// next leader continues: the record that the host is down is removed last.
func (c *Collector) removeHost(ctx context.Context, label string) (int, error) {
	switch err := c.mayRun(ctx, label); {
	case errs.Is(err, errs.InUse):
		return 0, nil // it is not gone, then
	case err != nil:
		return 0, err
	}
	since, _, _ := c.down.get(label)
	removed, err := c.removeEndpointsOf(ctx, label)
	c.cfg.Members.Removed(0, removed)
	if err != nil {
		return removed, fmt.Errorf("remove the endpoints of host %s: %w", label, err)
	}
	if err := c.fenced(ctx, objdb.Delete(state.HostRoot+label), objdb.Delete(downKey(label))); err != nil {
		return removed, fmt.Errorf("remove host %s: %w", label, err)
	}
	c.down.remove(label)
	c.cfg.Members.Forget(label)
	c.cfg.Members.Removed(1, 0)
	c.cfg.Log.WithField("host", label).WithField("endpoints", removed).WithField("downSince", since.Format(time.RFC3339)).
		Warn("host was down for the grace period, or its Kubernetes node was deleted: removed the host and its endpoints")
	return removed, nil
}

func (c *Collector) removeEndpointsOf(ctx context.Context, label string) (int, error) {
	ids := c.intent.EndpointsOf(label)
	var (
		mu      sync.Mutex
		failed  []error
		done    []string
		removed int
		g       errgroup.Group
	)
	g.SetLimit(removals)
	for _, id := range ids {
		g.Go(func() error {
			err := c.intent.RemoveEndpoint(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				removed++
				done = append(done, id)
			case errs.Is(err, errs.NotFound):
				done = append(done, id)
			default:
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	for chunk := range slices.Chunk(done, min(c.cfg.Store.MaxOps()-1, 32)) {
		ops := make([]objdb.Op, len(chunk))
		for i, id := range chunk {
			ops[i] = objdb.Delete(state.OperEndpointRt + id)
		}
		if err := c.fenced(ctx, ops...); err != nil {
			failed = append(failed, err)
		}
	}
	return removed, errors.Join(failed...)
}

// CollectGarbage removes at once the endpoints of hosts that have been down for longer
// than older: of all hosts, or of the named one. dryRun only lists them. A host that is
// registered, or whose agent reports, is skipped; if it is named, that is an error of kind
// InUse.
func (c *Collector) CollectGarbage(ctx context.Context, host string, older time.Duration, dryRun bool) ([]clusterapi.GoneHost, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	out := []clusterapi.GoneHost{}
	labels := c.down.labels()
	if host != "" {
		if err := c.mayRun(ctx, host); err != nil {
			return nil, err
		}
		labels = []string{host}
	}
	for _, label := range labels {
		since, _, down := c.down.get(label)
		switch {
		case down && time.Since(since) >= older:
		case host == "":
			continue
		case !down:
			return nil, errs.New(errs.NotFound, "host %s is not known to be down", host)
		default:
			return nil, errs.New(errs.InUse, "host %s is down since %s, which is less than %s ago", host, since.Format(time.RFC3339), older)
		}
		gone := clusterapi.GoneHost{Host: label, Gone: since.UTC().Format(time.RFC3339), Endpoints: c.intent.EndpointsOf(label)}
		if !dryRun {
			if _, err := c.removeHost(ctx, label); err != nil {
				return nil, err
			}
		}
		out = append(out, gone)
	}
	return out, nil
}
