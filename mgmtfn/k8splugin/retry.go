package k8splugin

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// retryQueue tells netmaster of deletions it could not be told of when they happened.
type retryQueue struct {
	cfg  Config
	kick chan struct{}

	mu   sync.Mutex
	todo map[string]masterapi.DeleteEndpointRequest // by endpoint id
}

func newRetryQueue(cfg Config) *retryQueue {
	return &retryQueue{cfg: cfg, kick: make(chan struct{}, 1), todo: map[string]masterapi.DeleteEndpointRequest{}}
}

func (q *retryQueue) add(id string, req masterapi.DeleteEndpointRequest) {
	q.mu.Lock()
	q.todo[id] = req
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// forget drops a deletion because the endpoint is wanted again.
func (q *retryQueue) forget(id string) {
	q.mu.Lock()
	delete(q.todo, id)
	q.mu.Unlock()
}

func (q *retryQueue) run(ctx context.Context) error {
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
		attempt, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := q.cfg.Master.DeleteEndpoint(attempt, req)
		cancel()
		switch {
		case err == nil:
			q.forget(id)
		case ctx.Err() != nil:
			return ctx.Err()
		case !errs.Is(err, errs.Unavailable) && !errs.Is(err, errs.Timeout):
			q.cfg.Log.WithError(err).WithField("endpoint", id).Error("netmaster refuses a deletion")
			q.forget(id)
		}
	}
}

// splitNetworkID takes <network>.<tenant> apart at the last dot; used only when the
// network's record, which has the parts, is gone.
func splitNetworkID(id string) Place {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return Place{Network: id, Tenant: "default"}
	}
	return Place{Network: id[:i], Tenant: id[i+1:]}
}
