package objdb_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/contiv/netplugin/objdb/memory"
)

// TestMain fails when a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStore returns an empty store, closed at the end of the test.
func newStore(t *testing.T) *memory.Store { return closeAtEnd(t, memory.New()) }

// connect returns another client of a store, closed at the end of the test.
func connect(t *testing.T, s *memory.Store) *memory.Store { return closeAtEnd(t, s.Connect()) }

func closeAtEnd(t *testing.T, s *memory.Store) *memory.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
