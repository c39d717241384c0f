package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// tokenAge is how long a token is trusted to open a stream with, which cannot be
// repeated when the token turns out to have ended. etcd's own live five minutes.
const tokenAge = time.Minute

// login gives every request a token, got with a name and a password when the first
// request needs it. (The client library would log in while it is made, and fail if no
// server is there yet.)
type login struct {
	user, password string

	mu    sync.Mutex // held while logging in: others wait for the result
	token string     // empty also when the servers ask for none
	got   time.Time  // zero: never
}

// authenticate is the one method that must not wait for a token.
const authenticate = "/etcdserverpb.Auth/Authenticate"

// with returns a context that carries a token that is no older than maxAge and not the
// one refused.
func (l *login) with(ctx context.Context, cc *grpc.ClientConn, maxAge time.Duration, refused string) (context.Context, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got.IsZero() || time.Since(l.got) > maxAge || refused != "" && l.token == refused {
		resp, err := etcdserverpb.NewAuthClient(cc).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: l.user, Password: l.password}, grpc.WaitForReady(true))
		switch {
		case err == nil:
			l.token = resp.Token
		case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
			l.token = ""
		default:
			return ctx, "", err
		}
		l.got = time.Now()
	}
	if l.token == "" {
		return ctx, "", nil
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, l.token), l.token, nil
}

func (l *login) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method == authenticate {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	const forever = 1 << 62
	authorized, token, err := l.with(ctx, cc, forever, "")
	if err != nil {
		return err
	}
	err = invoke(authorized, method, req, reply, cc, opts...)
	if refused(err) { // before anything was done: repeating is safe
		if token == "" {
			token = "none" // the servers have begun to ask for one
			l.forget()
		}
		if authorized, _, err = l.with(ctx, cc, forever, token); err != nil {
			return err
		}
		err = invoke(authorized, method, req, reply, cc, opts...)
	}
	return err
}

func (l *login) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	authorized, _, err := l.with(ctx, cc, tokenAge, "")
	if err != nil {
		return nil, err
	}
	return stream(authorized, desc, cc, method, opts...)
}

func (l *login) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = time.Time{}
}

// refused reports whether the servers do not know a token, or not any more.
func refused(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty)
}
