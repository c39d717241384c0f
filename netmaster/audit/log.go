package audit

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// queueLength bounds the records that wait to be written.
const queueLength = 4096

// Sink is where records go: a line each, with its end.
type Sink interface {
	Write(line []byte) (int, error)
	Close() error
}

// Log takes records. Create it with New; Run writes them. Safe for concurrent use.
type Log struct {
	sink    Sink
	log     logrus.FieldLogger
	now     func() time.Time
	queue   chan Record
	dropped atomic.Int64 // since the last record that was queued
	lost    prometheus.Counter
	written prometheus.Counter

	mu        sync.Mutex
	followers map[chan []byte]struct{}
}

// New returns a Log that writes to a sink, which it closes at the end of Run.
func New(sink Sink, log logrus.FieldLogger) *Log {
	return &Log{
		sink: sink, log: log, now: time.Now, queue: make(chan Record, queueLength), followers: map[chan []byte]struct{}{},
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_audit_dropped_total", Help: "Audit records that were lost: the queue was full, or they could not be written.",
		}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_audit_records_total", Help: "Audit records written.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(out chan<- *prometheus.Desc) { l.lost.Describe(out); l.written.Describe(out) }

// Collect implements prometheus.Collector.
func (l *Log) Collect(out chan<- prometheus.Metric) { l.lost.Collect(out); l.written.Collect(out) }

// Add notes a record; it never waits.
func (l *Log) Add(r Record) {
	if r.Time.IsZero() {
		r.Time = l.now().UTC()
	}
	r.Dropped = l.dropped.Swap(0)
	select {
	case l.queue <- r:
	default:
		l.dropped.Add(r.Dropped + 1)
		l.lost.Inc()
	}
}

// Run writes records until ctx ends, and then those that wait.
func (l *Log) Run(ctx context.Context) {
	defer l.sink.Close()
	said := false
	write := func(r Record) {
		err := l.write(r)
		if err != nil && !said {
			l.log.WithError(err).Error("cannot write the audit log; records are lost until it can be written again")
		}
		said = err != nil
	}
	for {
		select {
		case r := <-l.queue:
			write(r)
		case <-ctx.Done():
			for {
				select {
				case r := <-l.queue:
					write(r)
				default:
					return
				}
			}
		}
	}
}

func (l *Log) write(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	l.mu.Lock()
	for f := range l.followers {
		select {
		case f <- line:
		default: // it reads too slowly
		}
	}
	l.mu.Unlock()
	if _, err := l.sink.Write(line); err != nil {
		l.dropped.Add(r.Dropped + 1)
		l.lost.Inc()
		return err
	}
	l.written.Inc()
	return nil
}

// follow returns new records as they are written, until stop is called.
func (l *Log) follow() (lines <-chan []byte, stop func()) {
	f := make(chan []byte, 256)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers[f] = struct{}{}
	return f, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.followers, f)
	}
}
