// Package export sends the records of the flow log to collectors: IPFIX (RFC 7011),
// OpenTelemetry logs over HTTP, and files of JSON lines; and those that policies ask for to
// the audit file of the host.
//
// A record is sent once: a connection when it has ended, denied packets when they have been
// joined. The audit file gets connections when they begin as well, and what is missing in it.
// A collector that does not answer loses records, which are counted; it holds up neither the
// log nor other collectors.
package export

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Source is the log.
type Source interface {
	Stream(ctx context.Context, f flowapi.Filter, emit func(*flowapi.Event) error, flush func() error) error
}

// sink takes records, and gaps if they have been asked for. Its errors are told and the
// records counted as lost.
type sink interface {
	send(ctx context.Context, events []*flowapi.Event) error
	close()
}

// Bounds of an exporter.
const (
	most        = 1 << 14         // records that wait
	batch       = 256             // records sent together
	settle      = 2 * time.Second // denied packets are joined for less
	every       = time.Second
	sendTimeout = 10 * time.Second
)

// Exporter sends records to one collector. Create it with New.
type Exporter struct {
	name  string // without secrets
	host  string
	sink  sink
	log   logrus.FieldLogger
	what  flowapi.Filter
	audit bool // what begins, and gaps, too

	sent, lost atomic.Uint64

	missed uint64 // events that the audit file has not got, since when
	since  time.Time

	mu    sync.Mutex
	fails error // of the last attempt
}

// New makes an exporter: ipfix://host:port, otlp+http://host:port/path (or otlp+https),
// or file:/path. Nothing is opened or sent before Run.
func New(spec, host string, log logrus.FieldLogger) (*Exporter, error) {
	u, err := url.Parse(spec)
	if err != nil || u.User != nil {
		return nil, errs.New(errs.Invalid, "collector: expected ipfix://host:port, otlp+http://host:port/v1/logs or file:/path, without a user")
	}
	e := &Exporter{name: spec, host: host, log: log, what: flowapi.Filter{Follow: true}}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "ipfix" && u.Port() != "" && u.Hostname() != "":
		e.sink = newIPFIX(net.JoinHostPort(u.Hostname(), u.Port()))
	case (scheme == "otlp+http" || scheme == "otlp+https") && u.Host != "":
		u.Scheme = strings.TrimPrefix(scheme, "otlp+")
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/logs"
		}
		e.sink = newOTLP(u.String(), host)
	case scheme == "file" && strings.HasPrefix(u.Path, "/"):
		e.sink = &file{path: u.Path, most: fileSize, keep: 1}
	default:
		return nil, errs.New(errs.Invalid, "collector %.80q: expected ipfix://host:port, otlp+http://host:port/v1/logs or file:/path", spec)
	}
	return e, nil
}

// Run sends what the log records until ctx ends.
func (e *Exporter) Run(ctx context.Context, source Source) error {
	events := make(chan *flowapi.Event, batch)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		defer close(events)
		done <- source.Stream(ctx, e.what, func(ev *flowapi.Event) error {
			if ev.Gap != nil && !e.audit {
				e.lost.Add(ev.Gap.Count)
			}
			if !e.wants(ev) {
				return nil
			}
			select {
			case events <- ev:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func() error { return nil })
	}()
	e.collect(ctx, events)
	e.sink.close()
	if err := <-done; ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}

func (e *Exporter) wants(ev *flowapi.Event) bool {
	if ev.Record == nil {
		return e.audit && ev.Gap != nil
	}
	return e.audit || !ev.Record.End.IsZero()
}

// collect sends records once they do not change any more.
func (e *Exporter) collect(ctx context.Context, events <-chan *flowapi.Event) {
	waiting := map[string]*flowapi.Event{} // by the record's ID, or the time of a gap
	var order []due
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case ev, ok := <-events:
			if !ok {
				return
			}
			id := idOf(ev)
			if _, known := waiting[id]; !known {
				if len(waiting) >= most {
					e.lost.Add(1)
					continue
				}
				order = append(order, due{id, time.Now().Add(settle)})
			}
			waiting[id] = ev
		case now := <-tick.C:
			for len(order) > 0 && now.After(order[0].at) && ctx.Err() == nil {
				var some []*flowapi.Event
				for len(order) > 0 && len(some) < batch && now.After(order[0].at) {
					some = append(some, waiting[order[0].id])
					delete(waiting, order[0].id)
					order = order[1:]
				}
				e.send(ctx, some)
			}
		}
	}
}

// idOf tells records and gaps apart.
func idOf(ev *flowapi.Event) string {
	if ev.Record != nil {
		return ev.Record.ID
	}
	return ev.Gap.From.String() + ev.Gap.Why
}

// due is when a record is sent.
type due struct {
	id string
	at time.Time
}

// send sends records, and says when a collector stops or begins to take them.
func (e *Exporter) send(ctx context.Context, some []*flowapi.Event) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := e.sink.send(ctx, e.withMissed(some))
	e.mu.Lock()
	failed := e.fails != nil
	e.fails = err
	e.mu.Unlock()
	log := e.log.WithField("collector", e.name)
	switch {
	case err == nil:
		e.sent.Add(uint64(len(some)))
		e.missed = 0
		if failed {
			log.Info("the collector takes records of the flow log again")
		}
	default:
		e.lost.Add(uint64(len(some)))
		if e.missed += uint64(len(some)); !failed {
			e.since = time.Now().UTC()
			log.WithError(err).Warn("the collector does not take records of the flow log; they are lost to it until it does")
		}
	}
}

// withMissed has an audit file say first what it has not got.
func (e *Exporter) withMissed(some []*flowapi.Event) []*flowapi.Event {
	if !e.audit || e.missed == 0 {
		return some
	}
	gap := &flowapi.Gap{Host: e.host, From: e.since, To: time.Now().UTC(), Count: e.missed, Why: "the audit file could not be written"}
	return append([]*flowapi.Event{{Gap: gap}}, some...)
}

// Failing is why the collector did not take the last records; nil if it did.
func (e *Exporter) Failing() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fails
}

// recordsOf are the records among events.
func recordsOf(events []*flowapi.Event) []*flowapi.Record {
	out := make([]*flowapi.Record, 0, len(events))
	for _, ev := range events {
		if ev.Record != nil {
			out = append(out, ev.Record)
		}
	}
	return out
}

var (
	descSent = prometheus.NewDesc("contiv_flow_exported_total", "Records sent to collectors.", nil, nil)
	descLost = prometheus.NewDesc("contiv_flow_export_lost_total", "Records that collectors did not get.", nil, nil)

	descAudited   = prometheus.NewDesc("contiv_flow_audited_total", "Lines written to the audit file.", nil, nil)
	descUnaudited = prometheus.NewDesc("contiv_flow_audit_lost_total", "Lines that the audit file did not get.", nil, nil)
)

// Exporters are all of an agent; they export their counts.
type Exporters []*Exporter

// Describe implements prometheus.Collector.
func (Exporters) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSent, descLost, descAudited, descUnaudited} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (all Exporters) Collect(ch chan<- prometheus.Metric) {
	counts := map[*prometheus.Desc]uint64{descSent: 0, descLost: 0, descAudited: 0, descUnaudited: 0}
	for _, e := range all {
		sent, lost := descSent, descLost
		if e.audit {
			sent, lost = descAudited, descUnaudited
		}
		counts[sent] += e.sent.Load()
		counts[lost] += e.lost.Load()
	}
	for d, n := range counts {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
