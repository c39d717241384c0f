package consul

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// kind says what an error of a request means to us.
func kind(err error) errs.Kind {
	var status *statusError
	switch {
	case errs.KindOf(err) != errs.Other:
		return errs.KindOf(err) // a context's, or one of ours
	case errors.As(err, &status) && status.code < http.StatusInternalServerError && status.code != http.StatusTooManyRequests:
		return errs.Invalid
	}
	return errs.Unavailable
}

// wrap gives an error a kind, and says what was tried and where.
func (s *Store) wrap(err error, tried string) error {
	if err == nil {
		return nil
	}
	k := kind(err)
	if s.life.Over() {
		k, err = errs.Unavailable, errors.New("the store client is closed")
	}
	return errs.New(k, "%s: %s: %w", s.name, tried, err)
}

// passing reports whether an error is one that goes away: no leader, no connection, an
// agent that is overrun.
func passing(err error) bool {
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && kind(err) == errs.Unavailable
}

// applied reports whether a write that failed may have happened all the same.
func (t sending) applied() bool {
	var status *statusError
	if !t.sent || t.err == nil {
		return false
	}
	if !errors.As(t.err, &status) {
		return true // it went out, and we do not know more
	}
	// Agents say these before they begin. (A leader that steps down says something else.)
	refused := status.code < http.StatusInternalServerError ||
		strings.Contains(status.text, "No cluster leader") || strings.Contains(status.text, "rate limit exceeded")
	return !refused
}
