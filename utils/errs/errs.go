// Package errs gives every error of Contiv one of a few kinds, so that the edges
// of the system (REST, CNI, command line) can decide on an error without reading
// its text.
//
// A layer that knows what went wrong creates the error with New or tags one with
// Wrap; layers in between add context with fmt.Errorf and %w; the edge asks KindOf.
package errs

import (
	"context"
	"errors"
	"fmt"
)

// Kind says what sort of failure an error is.
type Kind uint8

// The kinds. The list is closed: the tables that map them to CNI codes and exit
// statuses cover every one.
const (
	Other           Kind = iota // nothing is known about the cause
	Invalid                     // the request is wrong and will stay wrong
	NotFound                    // the named object does not exist
	Exists                      // the object exists with other settings
	Conflict                    // a concurrent change won; the same request may succeed when repeated
	InUse                       // the object is needed by another one
	Exhausted                   // a pool (addresses, tags, ids) has nothing left
	Unavailable                 // a dependency is down; repeat later
	Timeout                     // the deadline passed before the outcome was known
	Unauthenticated             // nobody knows who asks, and that matters
	Forbidden                   // known who asks, and they may not
	Internal                    // an invariant of ours is broken
)

var names = [...]string{
	Other: "other", Invalid: "invalid", NotFound: "not found", Exists: "exists", Conflict: "conflict",
	InUse: "in use", Exhausted: "exhausted", Unavailable: "unavailable", Timeout: "timeout", Unauthenticated: "unauthenticated", Forbidden: "forbidden", Internal: "internal",
}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Error is an error with a kind. Its text is that of the wrapped error alone.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives errors.Is and errors.As access to the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind from a format; %w works as in fmt.Errorf.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Wrap tags err with a kind; nil stays nil.
func Wrap(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Err: err}
}

// KindOf returns the kind of the outermost *Error in err's chain. A context's
// expiry is Timeout and its cancellation Unavailable when nothing more precise is
// known; nil and anything else is Other.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Unavailable
	}
	return Other
}

// Is reports whether err is of the given kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
