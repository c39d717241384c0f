package ovsd

import (
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a test leaves a goroutine behind. client-go cannot stop the sources of
// events that it offers to tests.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop"))
}

// serveStream serves each connection of a listener with f until the test ends. Then it closes
// the connections, as a client that was cut off never ends them, and waits.
func serveStream(t *testing.T, l net.Listener, f func(net.Conn)) {
	t.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]struct{}{} // nil: the test has ended
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		open = nil
		mu.Unlock()
		running.Wait()
	})
	running.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			mu.Lock()
			if open == nil {
				conn.Close()
			} else {
				open[conn] = struct{}{}
				running.Go(func() { defer conn.Close(); f(conn) })
			}
			mu.Unlock()
		}
	})
}

// serveDatagrams answers each datagram with what f returns until the test ends, and waits.
func serveDatagrams(t *testing.T, conn net.PacketConn, f func([]byte) []byte) {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(func() { conn.Close(); running.Wait() })
	running.Go(func() {
		b := make([]byte, 1500)
		for n, from, err := conn.ReadFrom(b); err == nil; n, from, err = conn.ReadFrom(b) {
			_, _ = conn.WriteTo(f(b[:n]), from)
		}
	})
}
