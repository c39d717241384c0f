package ovsd

import (
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// control is the control socket of a switch that answers on demand.
type control struct {
	eager bool // changes alone cause revalidations; otherwise the test does

	mu    sync.Mutex
	waits int
	asked chan struct{} // receives a value for each wait
	let   chan struct{} // each value answers one wait
}

func newControl(t *testing.T) (*control, string) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "ovs-vswitchd.1.ctl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &control{asked: make(chan struct{}, 100), let: make(chan struct{}, 100)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s, dir
}

func (s *control) serve(conn net.Conn) {
	defer conn.Close()
	var req struct{ Method string }
	if json.NewDecoder(conn).Decode(&req) != nil {
		return
	}
	text := ""
	if req.Method == "fdb/add" && s.eager {
		s.let <- struct{}{}
	}
	if req.Method == "revalidator/wait" {
		s.mu.Lock()
		s.waits++
		s.mu.Unlock()
		s.asked <- struct{}{}
		<-s.let
	}
	_ = json.NewEncoder(conn).Encode(map[string]any{"id": 1, "result": text, "error": nil})
}

// TestCacheIsCurrent: callers are answered by a revalidation that began after their call,
// and concurrent callers share one.
func TestCacheIsCurrent(t *testing.T) {
	s, dir := newControl(t)
	c := newCache(dir)
	var first, others sync.WaitGroup
	first.Go(func() {
		if err := c.current(t.Context(), "br", "p1"); err != nil {
			t.Error(err)
		}
	})
	<-s.asked // the first revalidation is under way
	const n = 50
	started := make(chan struct{}, n)
	for range n {
		others.Go(func() {
			started <- struct{}{}
			if err := c.current(t.Context(), "br", "p1"); err != nil {
				t.Error(err)
			}
		})
	}
	for range n {
		<-started
	}
	for range 4 * n {
		s.let <- struct{}{}
		if len(s.let) == cap(s.let) {
			break
		}
	}
	first.Wait()
	others.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Two revalidations: the first, and one for all who were waiting by then, plus some
	// for stragglers.
	if s.waits < 3 || s.waits > n {
		t.Errorf("the switch was asked %d times for %d callers", s.waits, n+1)
	}
}

// TestCacheOfNobody: without a switch, nobody waits.
func TestCacheOfNobody(t *testing.T) {
	if err := newCache(t.TempDir()).current(t.Context(), "br", "p1"); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}

// TestIdleCacheIsCurrent: where nothing changes the caller gives the switch a change, after it
// has asked to be told.
func TestIdleCacheIsCurrent(t *testing.T) {
	s, dir := newControl(t)
	s.eager = true
	if err := newCache(dir).current(t.Context(), "br", "p1"); err != nil {
		t.Error(err)
	}
	if s.waits != 2 {
		t.Errorf("the switch was asked %d times, expected 2", s.waits)
	}
}
