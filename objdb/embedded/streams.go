package embedded

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// streams ends the watches and keep-alives of remote clients when the server stops.
// Left alone, the library waits seconds for each client to end them itself, which a
// watching agent never does.
type streams struct {
	ctx context.Context
	end context.CancelFunc
}

func newStreams() *streams {
	s := &streams{}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

func (s *streams) intercept(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := handle(srv, &endable{ServerStream: ss, ctx: ctx})
	if s.ctx.Err() != nil {
		return rpctypes.ErrGRPCStopped // "try another member", not "you have cancelled"
	}
	return err
}

// endable is a stream whose context also ends with the server.
type endable struct {
	grpc.ServerStream
	ctx context.Context
}

func (e *endable) Context() context.Context { return e.ctx }
