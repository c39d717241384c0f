package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// code returns the gRPC code of an error of the client, which comes in two wrappings.
func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Unknown
}

// kind says what an error of the client means to us.
func kind(err error) errs.Kind {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errs.Timeout
	case errors.Is(err, context.Canceled):
		return errs.Unavailable
	case errors.Is(err, rpctypes.ErrNoSpace):
		return errs.Exhausted
	}
	switch code(err) {
	case codes.DeadlineExceeded:
		return errs.Timeout
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.OutOfRange:
		return errs.Invalid
	case codes.DataLoss, codes.Internal:
		return errs.Internal
	}
	return errs.Unavailable
}

// wrap gives an error of the client a kind, and says what was tried and where.
func (s *Store) wrap(err error, tried string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		err = objdb.ErrLeaseEnded
	case s.life.Over():
		err = errors.New("the store client is closed")
	}
	return errs.New(kind(err), "%s: %s: %w", s.name, tried, err)
}

// passing reports whether an error is one that goes away: no leader, no connection,
// a server that is overrun.
func passing(err error) bool {
	if dropped(err) {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, rpctypes.ErrNoSpace) {
		return false
	}
	c := code(err)
	return c == codes.Unavailable || errors.Is(err, rpctypes.ErrTooManyRequests)
}

// notApplied reports whether a write that failed with err is known not to have
// happened, and may succeed when it is sent again.
func notApplied(err error) bool {
	return errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, rpctypes.ErrTooManyRequests) || dropped(err)
}

// dropped recognises the answer of a member that is between two leaders and has thrown
// a write away. It has no code, only this text.
func dropped(err error) bool {
	return err != nil && strings.Contains(err.Error(), "raft proposal dropped")
}
