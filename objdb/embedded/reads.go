package embedded

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

const (
	// largeReads is how many of them are made at a time.
	largeReads = 2
	// largeRead is from how many keys on a read is large.
	largeRead = 1000
)

// turns lets other processes read much by turns: an agent that starts reads everything, page
// by page, and an answer occupies 12 MiB until it is encoded. The processors are the same for
// all that start together, so none has its state later for the turns.
type turns chan struct{}

func newTurns() turns { return make(turns, largeReads) }

func (t turns) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if q, ok := req.(*etcdserverpb.RangeRequest); !ok || !isLarge(q) {
		return handle(ctx, req)
	}
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return handle(ctx, req)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// isLarge reports whether the answer may have many records.
func isLarge(q *etcdserverpb.RangeRequest) bool {
	return len(q.RangeEnd) > 0 && !q.CountOnly && !q.KeysOnly && (q.Limit == 0 || q.Limit >= largeRead)
}
