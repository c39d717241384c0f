// Package export sends the records of the flow log to collectors: IPFIX (RFC 7011),
// OpenTelemetry logs over HTTP, and files of JSON lines.
//
// A record is sent once: a connection when it has ended, denied packets when they have been
// joined. A collector that does not answer loses records, which are counted; it holds up
// neither the log nor other collectors.
package export

import (
	"context"
	"net"
	"net/url"
	"strings"
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

// sink takes records. Its errors are told and the records counted as lost.
type sink interface {
	send(ctx context.Context, records []*flowapi.Record) error
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
	name string // without secrets
	sink sink
	log  logrus.FieldLogger

	sent, lost atomic.Uint64
}

// New makes an exporter: ipfix://host:port, otlp+http://host:port/path (or otlp+https),
// or file:/path. Nothing is opened or sent before Run.
func New(spec, host string, log logrus.FieldLogger) (*Exporter, error) {
	u, err := url.Parse(spec)
	if err != nil || u.User != nil {
		return nil, errs.New(errs.Invalid, "collector: expected ipfix://host:port, otlp+http://host:port/v1/logs or file:/path, without a user")
	}
	e := &Exporter{name: spec, log: log}
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
		e.sink = &file{path: u.Path, most: fileSize}
	default:
		return nil, errs.New(errs.Invalid, "collector %.80q: expected ipfix://host:port, otlp+http://host:port/v1/logs or file:/path", spec)
	}
	return e, nil
}

// Run sends what the log records until ctx ends.
func (e *Exporter) Run(ctx context.Context, source Source) error {
	events := make(chan *flowapi.Record, batch)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		defer close(events)
		done <- source.Stream(ctx, flowapi.Filter{Follow: true}, func(ev *flowapi.Event) error {
			if ev.Gap != nil {
				e.lost.Add(ev.Gap.Count)
			}
			if ev.Record == nil || ev.Record.End.IsZero() {
				return nil
			}
			select {
			case events <- ev.Record:
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

// collect sends records once they do not change any more.
func (e *Exporter) collect(ctx context.Context, events <-chan *flowapi.Record) {
	waiting := map[string]*flowapi.Record{}
	var order []due
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := false
	for {
		select {
		case r, ok := <-events:
			if !ok {
				return
			}
			if _, known := waiting[r.ID]; !known {
				if len(waiting) >= most {
					e.lost.Add(1)
					continue
				}
				order = append(order, due{r.ID, time.Now().Add(settle)})
			}
			waiting[r.ID] = r
		case now := <-tick.C:
			for len(order) > 0 && now.After(order[0].at) && ctx.Err() == nil {
				var some []*flowapi.Record
				for len(order) > 0 && len(some) < batch && now.After(order[0].at) {
					some = append(some, waiting[order[0].id])
					delete(waiting, order[0].id)
					order = order[1:]
				}
				said = e.send(ctx, some, said)
			}
		}
	}
}

// due is when a record is sent.
type due struct {
	id string
	at time.Time
}

// send sends records, and says when a collector stops or begins to take them.
func (e *Exporter) send(ctx context.Context, some []*flowapi.Record, failing bool) (failed bool) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := e.sink.send(ctx, some)
	log := e.log.WithField("collector", e.name)
	if err == nil {
		e.sent.Add(uint64(len(some)))
		if failing {
			log.Info("the collector takes records of the flow log again")
		}
		return false
	}
	e.lost.Add(uint64(len(some)))
	if !failing {
		log.WithError(err).Warn("the collector does not take records of the flow log; they are lost to it until it does")
	}
	return true
}

var (
	descSent = prometheus.NewDesc("contiv_flow_exported_total", "Records sent to collectors.", nil, nil)
	descLost = prometheus.NewDesc("contiv_flow_export_lost_total", "Records that collectors did not get.", nil, nil)
)

// Exporters are all of an agent; they export their counts.
type Exporters []*Exporter

// Describe implements prometheus.Collector.
func (Exporters) Describe(ch chan<- *prometheus.Desc) { ch <- descSent; ch <- descLost }

// Collect implements prometheus.Collector.
func (all Exporters) Collect(ch chan<- prometheus.Metric) {
	var sent, lost uint64
	for _, e := range all {
		sent, lost = sent+e.sent.Load(), lost+e.lost.Load()
	}
	ch <- prometheus.MustNewConstMetric(descSent, prometheus.CounterValue, float64(sent))
	ch <- prometheus.MustNewConstMetric(descLost, prometheus.CounterValue, float64(lost))
}
