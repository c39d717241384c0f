package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/signal"
)

const (
	settleWithin = 2 * time.Second        // after which a switch that lags is reported
	postWithin   = 3 * time.Second        // one report to one netmaster
	firstSpacing = 100 * time.Millisecond // between reports, until a netmaster says otherwise
	maxSpacing   = 5 * time.Second
	slowestRetry = 5 * time.Second
)

// Follower is what the Reporter needs of the agent.
type Follower interface {
	Progress() (revision, settings int64, changed <-chan struct{})
	Ready() error
}

// Realiser is what it needs of the driver.
type Realiser interface {
	Flushed(ctx context.Context) error
	Summary() drivers.Summary
}

// ReporterConfig says who reports what.
type ReporterConfig struct {
	Host     Host
	Version  string
	Instance int64 // grows from process to process
	Agent    Follower
	Driver   Realiser
	Health   func() []string // what keeps the agent from serving, one line each
	Store    objdb.Store
	Dial     Dial // makes the connections to netmasters; nil: plain ones
	Log      logrus.FieldLogger
}

// Reporter tells every netmaster how this host is: whenever something has changed, and
// at a slow heartbeat otherwise. Create it with NewReporter.
//
// A revision counts as applied when all that was declared up to it is in the switch. So
// a host whose switch is down, or refuses a flow, stays behind and says why.
type Reporter struct {
	cfg  ReporterConfig
	http *http.Client

	mu      sync.Mutex
	report  clusterapi.Report // Sequence 0: none yet
	made    time.Time         // when report was made
	changed signal.Signal     // broadcast when report is out of date
	spacing time.Duration
}

// NewReporter makes a Reporter; it reports nothing before Run.
func NewReporter(cfg ReporterConfig) *Reporter {
	return &Reporter{
		cfg: cfg, spacing: firstSpacing,
		http: &http.Client{Timeout: postWithin, Transport: &http.Transport{DialContext: cfg.Dial, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}},
	}
}

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.observe(ctx) })
	g.Go(func() error { return r.deliver(ctx) })
	return g.Wait()
}

// Report returns the last report.
func (r *Reporter) Report() clusterapi.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// observe makes a report of every change.
func (r *Reporter) observe(ctx context.Context) error {
	var applied, settings int64
	for ctx.Err() == nil {
		declared, declaredSettings, changed := r.cfg.Agent.Progress()
		settled := r.settled(ctx, changed)
		if settled {
			applied, settings = declared, declaredSettings
		}
		r.publish(applied, settings)
		if !retry.Pause(ctx, r.interval()) {
			break
		}
		if !settled {
			continue // waiting for it is pause enough
		}
		beat := time.NewTimer(clusterapi.Heartbeat)
		select {
		case <-changed:
		case <-beat.C:
		case <-ctx.Done():
		}
		beat.Stop()
	}
	return ctx.Err()
}

// settled waits for the switch to have what has been declared, but not for long.
func (r *Reporter) settled(ctx context.Context, changed <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if r.cfg.Agent.Ready() != nil {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return false
	}
	return r.cfg.Driver.Flushed(ctx) == nil
}

// publish makes a report if it says something new, or the last one is old.
func (r *Reporter) publish(revision, settings int64) {
	sum := r.cfg.Driver.Summary()
	next := clusterapi.Report{
		Host: r.cfg.Host.Label, Instance: r.cfg.Instance, Version: r.cfg.Version,
		VTEP: r.cfg.Host.VTEP.String(), CtrlIP: r.cfg.Host.CtrlIP.String(),
		Revision: revision, Settings: settings, Flows: sum.Flows, Digest: fmt.Sprintf("%016x", sum.Digest),
		Reasons: r.cfg.Health(),
	}
	slices.Sort(next.Reasons)
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.report
	if old.Sequence > 0 && time.Since(r.made) < clusterapi.Heartbeat && old.Revision == next.Revision && old.Settings == next.Settings &&
		old.Flows == next.Flows && old.Digest == next.Digest && slices.Equal(old.Reasons, next.Reasons) {
		return
	}
	next.Sequence = old.Sequence + 1
	r.report, r.made = next, time.Now()
	r.changed.Broadcast()
}

func (r *Reporter) interval() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spacing
}

// deliver keeps one sender for each netmaster there is.
func (r *Reporter) deliver(ctx context.Context) error {
	var senders sync.WaitGroup
	defer senders.Wait()
	known := map[string]context.CancelFunc{}
	defer func() {
		for _, stop := range known {
			stop()
		}
	}()
	for masters := range objdb.WatchServices(ctx, r.cfg.Store, clusterapi.MasterService) {
		present := map[string]bool{}
		for _, m := range masters {
			address := m.Endpoint()
			present[address] = true
			if known[address] == nil {
				sctx, stop := context.WithCancel(ctx)
				known[address] = stop
				senders.Go(func() { r.send(sctx, address) })
			}
		}
		for address, stop := range known {
			if !present[address] {
				stop()
				delete(known, address)
			}
		}
	}
	return ctx.Err()
}

// send keeps one netmaster informed.
func (r *Reporter) send(ctx context.Context, address string) {
	sent, failed := uint64(0), false
	again := retry.New(200*time.Millisecond, slowestRetry)
	for ctx.Err() == nil {
		r.mu.Lock()
		report, changed := r.report, r.changed.Next()
		r.mu.Unlock()
		if report.Sequence == sent {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		err := r.post(ctx, address, report)
		if err == nil {
			sent, failed = report.Sequence, false
			again.Reset()
			continue
		}
		if !failed && ctx.Err() == nil {
			r.cfg.Log.WithError(err).WithField("netmaster", address).Debug("cannot send the report to netmaster; retrying")
		}
		failed = true
		again.Wait(ctx)
	}
}

func (r *Reporter) post(ctx context.Context, address string, report clusterapi.Report) error {
	body, err := json.Marshal(report)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+clusterapi.PathReport, bytes.NewReader(body))
	if err != nil {
		return errs.Wrap(errs.Invalid, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, clusterapi.MaxBody))
	if err != nil {
		return errs.Wrap(errs.Unavailable, err)
	}
	if resp.StatusCode != http.StatusOK {
		return errs.New(errs.Unavailable, "%s: %s", resp.Status, strconv.Quote(string(text)))
	}
	var answer clusterapi.ReportResponse
	if err := json.Unmarshal(text, &answer); err != nil {
		return errs.New(errs.Internal, "response to a report: %w", err)
	}
	if wish := time.Duration(answer.SpacingMS) * time.Millisecond; wish > 0 {
		r.mu.Lock()
		r.spacing = min(wish, maxSpacing)
		r.mu.Unlock()
	}
	return nil
}
