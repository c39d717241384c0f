package ovsd

import (
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// control is the control socket of a switch: it answers when it is let.
type control struct {
	mu    sync.Mutex
	waits int
	asked chan struct{} // gets one for each wait
	let   chan struct{} // answers one wait for each
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
	text := "netdev@ovs-netdev:\n  (keys 3)\n  dump duration : 1ms\n"
	if req.Method == "revalidator/wait" {
		s.mu.Lock()
		s.waits++
		s.mu.Unlock()
		s.asked <- struct{}{}
		<-s.let
		text = ""
	}
	_ = json.NewEncoder(conn).Encode(map[string]any{"id": 1, "result": text, "error": nil})
}

// TestCacheIsCurrent: who waits for the cache is answered by a walk that began after the call,
// and those who wait together share one.
func TestCacheIsCurrent(t *testing.T) {
	s, dir := newControl(t)
	c := newCache(dir)
	var first, others sync.WaitGroup
	first.Go(func() {
		if err := c.current(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-s.asked // the first walk is under way
	const n = 50
	started := make(chan struct{}, n)
	for range n {
		others.Go(func() {
			started <- struct{}{}
			if err := c.current(t.Context()); err != nil {
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
	// Two of a walk: the first, one for all who were waiting by then, and some for stragglers.
	if s.waits < 3 || s.waits > n {
		t.Errorf("the switch was asked %d times for %d callers", s.waits, n+1)
	}
}

// TestCacheOfNobody: without a switch to ask, nobody waits.
func TestCacheOfNobody(t *testing.T) {
	if err := newCache(t.TempDir()).current(t.Context()); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}
