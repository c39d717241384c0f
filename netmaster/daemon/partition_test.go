package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// wire is the way from one master to the store. While it is cut, what is sent waits, as
// in a network that drops packets: nothing is refused or reset.
type wire struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	open  chan struct{} // closed while the wire is whole
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to, open: make(chan struct{})}
	close(w.open)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			wg.Go(func() { w.copy(near, far) })
			wg.Go(func() { w.copy(far, near) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mend()
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		wg.Wait()
	})
	return w
}

func (w *wire) copy(dst io.WriteCloser, src io.Reader) {
	defer dst.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}

// TestPartition cuts leaders off from a real store. They must stop leading before the
// next one begins, their late writes must fail, and they must serve again, through the
// new leader, when the wire is mended.
func TestPartition(t *testing.T) {
	addr := netxtest.FreeAddress(t)
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), ListenClient: addr, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const lease = 2 * time.Second
	var (
		masters []*master
		wires   []*wire
	)
	for i := range 3 {
		w := newWire(t, addr)
		m := &master{name: fmt.Sprintf("m%d", i), open: func(context.Context) (objdb.Store, error) {
			return etcd.New(etcd.Config{Endpoints: []string{"http://" + w.l.Addr().String()}})
		}}
		m.start(t, lease)
		masters, wires = append(masters, m), append(wires, w)
	}
	for range 2 {
		leader := theLeader(t, masters...)
		terms := leader.controllers()
		old := terms[len(terms)-1]
		wire := wires[slices.Index(masters, leader)]
		rest := slices.DeleteFunc(slices.Clone(masters), func(m *master) bool { return m == leader })
		began := make(map[*master]int)
		for _, m := range rest {
			began[m] = len(m.controllers())
		}
		wire.cut()
		// No clock decides here: when the next one begins, the old one has ended.
		eventually.True(t, "another one leads", func() bool {
			for _, m := range rest {
				if len(m.controllers()) > began[m] {
					return true
				}
			}
			return false
		})
		select {
		case <-old.ctx.Done():
		default:
			t.Error("two terms at once")
		}
		if leader.leads(t) {
			t.Error("the one that was cut off says it leads")
		}
		next := theLeader(t, rest...)
		for _, m := range rest {
			if code, body := m.get(t, "/api/v1/x/"); code != 200 || body != next.name {
				t.Errorf("%s: %d %q", m.name, code, body)
			}
		}
		if code, _ := leader.get(t, "/healthz"); code != 503 {
			t.Errorf("/healthz of the one that is cut off: %d", code)
		}
		wire.mend()
		wantFenced(t, old)
		eventually.True(t, "the one that was cut off serves through the leader", func() bool {
			code, body := leader.get(t, "/api/v1/x/")
			return code == 200 && body == next.name
		})
	}
}
