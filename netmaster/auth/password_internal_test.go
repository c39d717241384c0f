package auth

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// TestSameWork: a login that fails hashes once, with the same parameters, whatever it fails
// for: so the time does not tell whether there is a user.
func TestSameWork(t *testing.T) {
	s, err := New(Config{Store: func() objdb.Store { return nil }, Keys: func() []seal.Key { return []seal.Key{{ID: "k"}} }, Log: logrus.New()})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.hasher.hash(t.Context(), "the-password")
	if err != nil {
		t.Fatal(err)
	}
	put := func(u user) {
		value, err := s.keys.encode(userRoot+u.Name, u)
		if err != nil {
			t.Fatal(err)
		}
		s.dir.apply(objdb.Batch{Revision: 1, Events: []objdb.Event{{KV: objdb.KV{Key: userRoot + u.Name, Value: value}}}})
	}
	put(user{ID: "1", Name: "jane", Password: stored})
	put(user{ID: "2", Name: "gone", Password: stored, Disabled: true})
	put(user{ID: "3", Name: "none"})
	var work []string
	real := s.hasher.derive
	s.hasher.derive = func(password, salt []byte, p HashParameters) []byte {
		work = append(work, fmt.Sprintf("%d bytes, salt %d, %+v", len(password), len(salt), p))
		return real(password, salt, p)
	}
	want := fmt.Sprintf("12 bytes, salt %d, %+v", saltSize, DefaultHash)
	for _, try := range []struct {
		name, password string
		err            error
	}{{"jane", "the-password", nil}, {"jane", "not-password", errWrong}, {"john", "the-password", errWrong}, {"gone", "the-password", errWrong}, {"none", "the-password", errWrong}} {
		work = nil
		if _, err := s.tryLogin(t.Context(), try.name, try.password, "192.0.2.1:1"); err != nil && err != try.err || (err == nil) != (try.err == nil) {
			t.Errorf("%s: %v, want %v", try.name, err, try.err)
		}
		if len(work) != 1 || work[0] != want {
			t.Errorf("%s: work %q, want once %s", try.name, work, want)
		}
	}
}

// TestHashingIsBounded: no more than the turns there are hash at once, and who waits too
// many is told so.
func TestHashingIsBounded(t *testing.T) {
	h := newHasher(HashParameters{Memory: 8, Time: 1, Threads: 1})
	var now, most atomic.Int32
	hold, began := make(chan struct{}), make(chan struct{}, maxWaiting)
	h.derive = func(_, _ []byte, _ HashParameters) []byte {
		most.Store(max(most.Load(), now.Add(1)))
		began <- struct{}{}
		<-hold
		now.Add(-1)
		return make([]byte, hashSize)
	}
	done := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			_, err := h.verify(t.Context(), "", "the-password")
			done <- err
		}()
	}
	for range cap(h.turns) {
		<-began
	}
	for len(h.waiting) < maxWaiting {
		time.Sleep(time.Millisecond)
	}
	if _, err := h.verify(t.Context(), "", "one-more"); StatusOf(err) != 503 {
		t.Errorf("one more than can wait: %v, want 503", err)
	}
	close(hold)
	for range maxWaiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := int(most.Load()); got > cap(h.turns) {
		t.Errorf("%d hashed at once, want at most %d", got, cap(h.turns))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range cap(h.turns) {
		h.turns <- struct{}{}
	}
	if _, err := h.verify(gone, "", "the-password"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a client that has gone: %v", err)
	}
}

func TestStoredHash(t *testing.T) {
	h := newHasher(HashParameters{Memory: 8, Time: 1, Threads: 1})
	stored, err := h.hash(t.Context(), "the-password")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=8,t=1,p=1$") || strings.Contains(stored, "the-password") {
		t.Errorf("stored = %s", stored)
	}
	// A record has its own parameters: others may be the default by then.
	later := newHasher(HashParameters{Memory: 16, Time: 2, Threads: 1})
	if ok, err := later.verify(t.Context(), stored, "the-password"); !ok || err != nil {
		t.Errorf("verify = %t, %v", ok, err)
	}
	for _, bad := range []string{"x", "$argon2id$v=19$m=4294967295,t=1,p=1$" + stored[28:], strings.Replace(stored, "t=1", "t=0", 1), stored[:len(stored)-4], strings.Replace(stored, "argon2id", "argon2i", 1)} {
		if ok, err := h.verify(t.Context(), bad, "the-password"); ok || err == nil {
			t.Errorf("%s is taken for a hash", bad)
		}
	}
	for _, bad := range []string{"", "seven77", strings.Repeat("x", maxPassword+1)} {
		if _, err := h.hash(t.Context(), bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("a password of %d bytes: %v", len(bad), err)
		}
	}
}
