package ovsd

import (
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/contiv/netplugin/test/eventually"
)

// control is the control socket of a switch that answers on demand.
type control struct {
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

// TestCacheIsCurrent: callers are answered by a revalidation that began after their call,
// and concurrent callers share one.
func TestCacheIsCurrent(t *testing.T) {
	s, dir := newControl(t)
	c := newCache(dir)
	var first, others sync.WaitGroup
	first.Go(func() {
		if err := c.current(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-s.asked // the first revalidation is under way
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
	// Two revalidations: the first, and one for all who were waiting by then, plus some
	// for stragglers.
	if s.waits < 3 || s.waits > n {
		t.Errorf("the switch was asked %d times for %d callers", s.waits, n+1)
	}
}

// TestCacheOfNobody: without a switch, nobody waits.
func TestCacheOfNobody(t *testing.T) {
	if err := newCache(t.TempDir()).current(t.Context()); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}

// TestCacheWasCurrent: a caller is not held until the next revalidation when the one that
// counts is over. The switch answers no wait here, as long as nothing changes.
func TestCacheWasCurrent(t *testing.T) {
	s, dir := newControl(t)
	c := newCache(dir)
	// On a machine that has no processor for the switch it cannot be told, and is tried again.
	eventually.True(t, "the caller goes on", func() bool { return c.current(t.Context()) == nil })
	close(s.let)
}
