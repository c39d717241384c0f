package endpoint

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// deliverWithin limits one attempt; the Master repeats it while there is no leader. A
// Backoff separates attempts.
const (
	deliverWithin = 30 * time.Second
	firstRetry    = 50 * time.Millisecond
	longestRetry  = 5 * time.Second
)

// deleter receives deletions.
type deleter interface {
	DeleteEndpoint(context.Context, masterapi.DeleteEndpointRequest) error
}

// queue holds the deletions that could not be sent to netmaster when they happened.
type queue struct {
	master deleter
	log    logrus.FieldLogger
	kick   chan struct{}

	mu   sync.Mutex
	todo map[string]masterapi.DeleteEndpointRequest // by endpoint id
}

func newQueue(master deleter, log logrus.FieldLogger) *queue {
	return &queue{master: master, log: log, kick: make(chan struct{}, 1), todo: map[string]masterapi.DeleteEndpointRequest{}}
}

// add adds a deletion. id is the endpoint's.
func (q *queue) add(id string, req masterapi.DeleteEndpointRequest) {
	q.mu.Lock()
	q.todo[id] = req
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// forget removes a deletion: it has been delivered, or the endpoint is wanted again.
func (q *queue) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.todo, id)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.todo)
}

// next returns any queued deletion.
func (q *queue) next() (id string, req masterapi.DeleteEndpointRequest, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, req = range q.todo {
		return id, req, true
	}
	return "", req, false
}

// run delivers deletions until ctx ends.
func (q *queue) run(ctx context.Context) error {
	again := retry.New(firstRetry, longestRetry)
	for ctx.Err() == nil {
		id, req, ok := q.next()
		if !ok {
			select {
			case <-ctx.Done():
			case <-q.kick:
			}
			continue
		}
		if q.deliver(ctx, id, req) {
			q.forget(id)
			again.Reset()
			continue
		}
		again.Wait(ctx)
	}
	return ctx.Err()
}

// deliver sends netmaster one deletion and reports whether it is done.
func (q *queue) deliver(ctx context.Context, id string, req masterapi.DeleteEndpointRequest) (done bool) {
	attempt, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	err := q.master.DeleteEndpoint(attempt, req)
	if err == nil {
		return true
	}
	if ctx.Err() != nil || errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Timeout) {
		return false
	}
	q.log.WithError(err).WithField("endpoint", id).Error("netmaster refuses to delete an endpoint; giving up")
	return true
}
