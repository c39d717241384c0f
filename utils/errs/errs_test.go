package errs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want Kind
		text string
	}{
		{"of nobody", io.EOF, Other, "EOF"},
		{"new", New(NotFound, "network %s not found", "net1"), NotFound, "network net1 not found"},
		{"tagged", Wrap(Unavailable, io.EOF), Unavailable, "EOF"},
		{"with context around it", fmt.Errorf("create: %w", New(Exhausted, "no address is left")), Exhausted, "create: no address is left"},
		{"tagged twice", Wrap(Unavailable, New(Internal, "broken")), Unavailable, "broken"},
		{"with a cause of another kind", New(Invalid, "request: %w", New(NotFound, "nothing")), Invalid, "request: nothing"},
		{"too late", fmt.Errorf("ask: %w", context.DeadlineExceeded), Timeout, "ask: context deadline exceeded"},
		{"given up", context.Canceled, Unavailable, "context canceled"},
		{"tagged, then too late", Wrap(Conflict, context.DeadlineExceeded), Conflict, "context deadline exceeded"},
		{"joined", errors.Join(io.EOF, New(InUse, "in use")), InUse, "EOF\nin use"},
	} {
		if got := KindOf(tt.err); got != tt.want || !Is(tt.err, tt.want) || tt.err.Error() != tt.text {
			t.Errorf("%s: kind %s, text %q; want %s and %q", tt.name, got, tt.err, tt.want, tt.text)
		}
		for k := Other; k <= Internal; k++ {
			if Is(tt.err, k) != (k == tt.want) {
				t.Errorf("%s is of kind %s: %t", tt.name, k, Is(tt.err, k))
			}
		}
	}
}

// TestNoError: no error is of no kind, and stays none.
func TestNoError(t *testing.T) {
	if Wrap(Invalid, nil) != nil || Is(nil, Other) || KindOf(nil) != Other {
		t.Error("an error came out of none")
	}
}

func TestCauseIsFound(t *testing.T) {
	err := fmt.Errorf("read: %w", Wrap(Unavailable, io.ErrUnexpectedEOF))
	var kind *Error
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &kind) || kind.Kind != Unavailable {
		t.Errorf("%v does not tell its cause and kind", err)
	}
}

// TestEveryKindHasAName, and no two have the same.
func TestEveryKindHasAName(t *testing.T) {
	seen := map[string]Kind{}
	for k := Other; k <= Internal; k++ {
		name := k.String()
		if other, twice := seen[name]; name == "" || twice {
			t.Errorf("kind %d is called %q, as is %d", k, name, other)
		}
		seen[name] = k
	}
	if got := (Internal + 1).String(); got != fmt.Sprintf("kind %d", Internal+1) {
		t.Errorf("an unknown kind is called %q", got)
	}
}
