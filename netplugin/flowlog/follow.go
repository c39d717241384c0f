package flowlog

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
)

const (
	pollInterval = time.Second
	pollShare    = 33 // a reading may take one part in so many of the time

	withheldEvery = 5 * time.Second
	withheldAgain = 100 * time.Millisecond // until it is known where counts begin
)

// readings are how long the last readings took. The shortest of them is the table's doing,
// the others may be a busy processor's.
type readings [3]time.Duration

func (r *readings) add(took time.Duration) time.Duration {
	r[0], r[1], r[2] = r[1], r[2], took
	return slices.Min(r[:])
}

// follow reads the connections until ctx ends.
func (l *Log) follow(ctx context.Context, source drivers.Connections) {
	var last readings
	for said := ""; ; {
		began := time.Now()
		err := l.poll(ctx, source)
		took := time.Since(began)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			l.cfg.Log.WithError(err).Warn("cannot read the switch's connections for the flow log; retrying")
		}
		if err == nil {
			said = ""
		}
		wait := max(pollInterval, last.add(took)*pollShare)
		l.pace(wait, took)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait - min(took, wait)):
		}
	}
}

// pace notes how often connections are read, and says when that changes.
func (l *Log) pace(wait, took time.Duration) {
	slow := wait > 2*pollInterval
	l.mu.Lock()
	was := l.stats.slow
	l.stats.slow, l.stats.took = slow, took
	l.mu.Unlock()
	switch {
	case slow && !was:
		l.cfg.Log.WithFields(logrus.Fields{"interval": wait.Round(time.Second), "reading": took.Round(time.Millisecond)}).
			Warn("the switch has so many connections that the flow log reads them less often; shorter ones may be missing")
	case !slow && was:
		l.cfg.Log.Info("the flow log reads the switch's connections every second again")
	}
}

// countWithheld tells of the packets that the switch did not hand over.
func (l *Log) countWithheld(ctx context.Context, source drivers.Connections) {
	var last map[string]uint64
	for wait := withheldAgain; ; {
		if counts, err := source.Withheld(ctx); err == nil {
			if n := increase(last, counts); n > 0 && wait == withheldEvery {
				l.gap(n, "more packets were denied than the switch hands over")
			}
			last, wait = counts, withheldEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// increase is what counts have grown by since the last time.
func increase(last, counts map[string]uint64) (n uint64) {
	for meter, count := range counts {
		was := last[meter]
		if count < was { // another meter of the same number
			was = 0
		}
		n += count - was
	}
	return n
}
