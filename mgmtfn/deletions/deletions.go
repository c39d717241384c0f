// Package deletions tells netmaster of endpoints that are gone and that it could not be
// told of when they went: a container runtime must not be kept waiting for that.
package deletions

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Master is who is told.
type Master interface {
	DeleteEndpoint(context.Context, masterapi.DeleteEndpointRequest) error
}

// attemptFor bounds one attempt; the Master repeats it while nobody leads.
const attemptFor = 30 * time.Second

// Queue holds the deletions that are still to be told. Create it with New.
type Queue struct {
	master Master
	log    logrus.FieldLogger
	kick   chan struct{}

	mu   sync.Mutex
	todo map[string]masterapi.DeleteEndpointRequest // by endpoint id
}

// New makes an empty queue; nothing is told before Run.
func New(master Master, log logrus.FieldLogger) *Queue {
	return &Queue{master: master, log: log, kick: make(chan struct{}, 1), todo: map[string]masterapi.DeleteEndpointRequest{}}
}

// Add takes a deletion in. id is the endpoint's.
func (q *Queue) Add(id string, req masterapi.DeleteEndpointRequest) {
	q.mu.Lock()
	q.todo[id] = req
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// Forget drops a deletion because the endpoint is wanted again.
func (q *Queue) Forget(id string) {
	q.mu.Lock()
	delete(q.todo, id)
	q.mu.Unlock()
}

// Len returns how many deletions are left.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.todo)
}

// Run tells netmaster until ctx ends.
func (q *Queue) Run(ctx context.Context) error {
	for {
		q.mu.Lock()
		var id string
		var req masterapi.DeleteEndpointRequest
		for id, req = range q.todo {
			break
		}
		left := len(q.todo)
		q.mu.Unlock()
		if left == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-q.kick:
			}
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, attemptFor)
		err := q.master.DeleteEndpoint(attempt, req)
		cancel()
		switch {
		case err == nil:
			q.Forget(id)
		case ctx.Err() != nil:
			return ctx.Err()
		case !errs.Is(err, errs.Unavailable) && !errs.Is(err, errs.Timeout):
			q.log.WithError(err).WithField("endpoint", id).Error("netmaster refuses a deletion")
			q.Forget(id)
		}
	}
}
