package intent

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

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// A host that is gone for good leaves its endpoints behind, and with them addresses that
// nobody uses. A host that is only away must keep them: its containers may still run. So
// two things have to be proved before anything is removed: the host is not registered,
// as the store itself says at that moment, and it has been down for the whole grace,
// which is counted from a record that outlives changes of leader. Besides, this leader
// must have seen it away for a while itself, and its agent must not report.
//
// A host of a cluster of Kubernetes is gone for good when its Node has been deleted. Then
// only the proofs count, and no grace.

// DefaultGrace is how long a host may be away before its endpoints are removed.
const DefaultGrace = 24 * time.Hour

// absentRoot holds one record for each host that is away.
const absentRoot = state.OperRoot + "netmaster/absent/"

// Pace of looking at the hosts, and how long a leader watches a host before it believes
// that it is away.
const (
	slowestLook = 30 * time.Second
	fastestLook = 20 * time.Millisecond
	longestSeen = 3 * objdb.ServiceTTL
)

// absence is the record under absentRoot.
type absence struct {
	Since time.Time `json:"since"` // when a leader first missed the host
}

// absences is which hosts are away.
type absences struct {
	looking sync.Mutex // held while hosts are looked at

	mu    sync.Mutex
	since map[string]time.Time // by label, as recorded
	seen  map[string]time.Time // by label: since when this leader has missed it
}

func (a *absences) get(label string) (since, seen time.Time, away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, away = a.since[label]
	return since, a.seen[label], away
}

func (a *absences) set(label string, since, seen time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since[label], a.seen[label] = since, seen
}

func (a *absences) remove(label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, label)
	delete(a.seen, label)
}

func (a *absences) labels() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.since))
}

// keepHosts notes which hosts are away, and removes what is left of those that stay away,
// until ctx or the term ends.
func (e *Engine) keepHosts(ctx context.Context) {
	tick := time.NewTicker(min(max(e.cfg.Grace/20, fastestLook), slowestLook))
	defer tick.Stop()
	loaded := false
	for {
		var nodes <-chan struct{}
		if e.cfg.Nodes != nil {
			nodes = e.cfg.Nodes.Changed()
		}
		var err error
		if !loaded {
			err = e.loadAbsences(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = e.lookAtHosts(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.WithError(err).Warn("cannot check for hosts that are down; retrying")
		}
		select {
		case <-ctx.Done():
			return
		case <-e.writer.stopped:
			return
		case <-tick.C:
		case <-nodes:
		}
	}
}

// loadAbsences reads what the last leader has noted.
func (e *Engine) loadAbsences(ctx context.Context) error {
	kvs, _, err := e.store.List(ctx, absentRoot)
	if err != nil {
		return fmt.Errorf("read which hosts are down: %w", err)
	}
	now := time.Now()
	for _, kv := range kvs {
		var rec absence
		if json.Unmarshal(kv.Value, &rec) != nil || rec.Since.After(now) { // unreadable, or by a clock that was ahead
			rec.Since = now
		}
		e.absences.set(strings.TrimPrefix(kv.Key, absentRoot), rec.Since, now)
	}
	return nil
}

// lookAtHosts compares the hosts there should be with those that are registered.
func (e *Engine) lookAtHosts(ctx context.Context) error {
	e.absences.looking.Lock()
	defer e.absences.looking.Unlock()
	registered, known := e.cfg.Members.Agents()
	if !known {
		return nil
	}
	hosts, err := e.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, label := range e.absences.labels() {
		_, here := registered[label]
		if _, exists := hosts[label]; here || !exists {
			if err := e.forgetAbsence(ctx, label); err != nil {
				return err
			}
			if here {
				e.cfg.Log.WithField("host", label).Info("host is up again and keeps its endpoints")
			}
		}
	}
	now := time.Now()
	for _, label := range slices.Sorted(maps.Keys(hosts)) {
		if _, here := registered[label]; here {
			continue
		}
		since, seen, away := e.absences.get(label)
		if !away {
			err = e.noteAbsence(ctx, label, now)
		}
		graceOver := away && now.Sub(since) >= e.cfg.Grace && now.Sub(seen) >= min(e.cfg.Grace, longestSeen)
		if err == nil && (graceOver || e.nodeGone(ctx, hosts[label].Node)) {
			_, err = e.removeHost(ctx, label)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodeGone reports whether a host was a Node of a cluster of Kubernetes, and is none any
// more. node is empty for a host that never was.
func (e *Engine) nodeGone(ctx context.Context, node string) bool {
	return node != "" && e.cfg.Nodes != nil && e.cfg.Nodes.Gone(ctx, node)
}

func absentKey(label string) string { return absentRoot + label }

func (e *Engine) noteAbsence(ctx context.Context, label string, now time.Time) error {
	value, err := json.Marshal(absence{Since: now.UTC()})
	if err != nil {
		return errs.Wrap(errs.Internal, err)
	}
	if err := e.fenced(ctx, objdb.Put(absentKey(label), value)); err != nil {
		return fmt.Errorf("record that host %s is down: %w", label, err)
	}
	e.absences.set(label, now, now)
	e.cfg.Log.WithField("host", label).WithField("grace", e.cfg.Grace.String()).
		Info("host is down; its endpoints are removed when the grace period ends")
	return nil
}

func (e *Engine) forgetAbsence(ctx context.Context, label string) error {
	if err := e.fenced(ctx, objdb.Delete(absentKey(label))); err != nil {
		return fmt.Errorf("record that host %s is up: %w", label, err)
	}
	e.absences.remove(label)
	return nil
}

// fenced applies operations that are no part of the model, if this leader still leads.
func (e *Engine) fenced(ctx context.Context, ops ...objdb.Op) error {
	_, err := e.store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{e.writer.commits.lead.Fence()}, Then: ops})
	if errors.Is(err, objdb.ErrCompareFailed) {
		return errNotLeader()
	}
	return err
}

// stays returns why a host that seems to be away must keep what it has, or nil. It asks
// the store, not what has been seen of it.
func (e *Engine) stays(ctx context.Context, label string) error {
	kvs, _, err := e.store.List(ctx, state.ServiceRoot+clusterapi.AgentService+"/")
	if err != nil {
		return fmt.Errorf("read the registry: %w", err)
	}
	for _, kv := range kvs {
		var info objdb.ServiceInfo
		if json.Unmarshal(kv.Value, &info) == nil && info.Hostname == label {
			return errs.New(errs.InUse, "host %s is registered", label)
		}
	}
	if e.cfg.Members.Reporting(label) {
		return errs.New(errs.InUse, "host %s is not registered, but its agent reports", label)
	}
	return nil
}

// removeHost removes the endpoints of a host that is gone, their operational records and
// the host's own record, and returns how many endpoints those were. Cut off in between,
// the rest is left to the next leader: the record of the absence goes last.
func (e *Engine) removeHost(ctx context.Context, label string) (int, error) {
	switch err := e.stays(ctx, label); {
	case errs.Is(err, errs.InUse):
		return 0, nil // it is not gone, then
	case err != nil:
		return 0, err
	}
	since, _, _ := e.absences.get(label)
	removed, err := e.removeEndpointsOf(ctx, label)
	e.cfg.Members.Removed(0, removed)
	if err != nil {
		return removed, fmt.Errorf("remove the endpoints of host %s: %w", label, err)
	}
	if err := e.fenced(ctx, objdb.Delete(state.HostRoot+label), objdb.Delete(absentKey(label))); err != nil {
		return removed, fmt.Errorf("remove host %s: %w", label, err)
	}
	e.absences.remove(label)
	e.cfg.Members.Forget(label)
	e.cfg.Members.Removed(1, 0)
	e.cfg.Log.WithField("host", label).WithField("endpoints", removed).WithField("downSince", since.Format(time.RFC3339)).
		Warn("host was down for the grace period, or its Kubernetes node was deleted: removed the host and its endpoints")
	return removed, nil
}

func (e *Engine) removeEndpointsOf(ctx context.Context, label string) (int, error) {
	ids := e.endpointsOf(label)
	var (
		mu      sync.Mutex
		failed  []error
		done    []string
		removed int
		g       errgroup.Group
	)
	g.SetLimit(queueLength / 4) // they share transactions, and leave room for others
	for _, id := range ids {
		g.Go(func() error {
			_, err := e.deleteEndpoint(ctx, id)
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
	for chunk := range slices.Chunk(done, min(e.store.MaxOps()-1, 32)) {
		ops := make([]objdb.Op, len(chunk))
		for i, id := range chunk {
			ops[i] = objdb.Delete(state.OperEndpointRt + id)
		}
		if err := e.fenced(ctx, ops...); err != nil {
			failed = append(failed, err)
		}
	}
	return removed, errors.Join(failed...)
}

// endpointsOf lists the ids of the endpoints that are homed on a host, sorted.
func (e *Engine) endpointsOf(label string) []string {
	e.model.mu.RLock()
	defer e.model.mu.RUnlock()
	return sortedKeys(e.model.endpoints.ofHost, label)
}

// CollectGarbage removes at once what is left of hosts that have been down for longer
// than older: of all, or of the one that is named. dryRun: only says what that would be.
// A host that is registered, or whose agent reports, is left alone; named, it is an
// error of kind InUse.
func (e *Engine) CollectGarbage(ctx context.Context, host string, older time.Duration, dryRun bool) ([]clusterapi.GoneHost, error) {
	if err := e.lookAtHosts(ctx); err != nil {
		return nil, err
	}
	out := []clusterapi.GoneHost{}
	labels := e.absences.labels()
	if host != "" {
		if err := e.stays(ctx, host); err != nil {
			return nil, err
		}
		labels = []string{host}
	}
	for _, label := range labels {
		since, _, away := e.absences.get(label)
		switch {
		case away && time.Since(since) >= older:
		case host == "":
			continue
		case !away:
			return nil, errs.New(errs.NotFound, "host %s is not known to be down", host)
		default:
			return nil, errs.New(errs.InUse, "host %s is down since %s, which is less than %s ago", host, since.Format(time.RFC3339), older)
		}
		gone := clusterapi.GoneHost{Host: label, Gone: since.UTC().Format(time.RFC3339), Endpoints: e.endpointsOf(label)}
		if !dryRun {
			if _, err := e.removeHost(ctx, label); err != nil {
				return nil, err
			}
		}
		out = append(out, gone)
	}
	return out, nil
}
