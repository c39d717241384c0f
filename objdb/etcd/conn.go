package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/contiv/netplugin/utils/signal"
)

// The etcd client asks for calls that fail at once while there is no connection, and
// then spins. Ours wait for the connection instead, bounded by their context; what
// was never sent is then never reported as sent.

func waitForReadyUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(true))...)
}

func waitForReadyStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return stream(ctx, desc, cc, method, append(opts, grpc.WaitForReady(true))...)
}

// reconnect is how often a server that is down is tried. (The library's own limit of
// two minutes would keep an agent from a store that is back.)
var reconnect = grpc.ConnectParams{
	Backoff:           grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// watchConnection broadcasts whenever the connection is ready again after it was not.
func watchConnection(ctx context.Context, conn *grpc.ClientConn, reconnects *signal.Signal) {
	seen, changed := false, false
	for {
		state := conn.GetState()
		if state == connectivity.Ready {
			if seen && changed {
				reconnects.Broadcast()
			}
			seen, changed = true, false
		}
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
		changed = true
	}
}
