package endpoint

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// refusing fails each deletion with the errors listed for it, in order.
type refusing struct {
	mu   sync.Mutex
	errs map[string][]error
	told chan string
}

func (m *refusing) DeleteEndpoint(_ context.Context, req masterapi.DeleteEndpointRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := m.errs[req.EndpointID]; len(left) > 0 {
		m.errs[req.EndpointID] = left[1:]
		return left[0]
	}
	m.told <- req.EndpointID
	return nil
}

func TestQueue(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	down := errs.New(errs.Unavailable, "down")
	m := &refusing{told: make(chan string, 10), errs: map[string][]error{
		"later": {down, down}, "refused": {errs.New(errs.Invalid, "no")},
	}}
	q := newQueue(m, log)
	for _, id := range []string{"later", "refused", "wanted", "now"} {
		q.add("net.default-"+id, masterapi.DeleteEndpointRequest{EndpointID: id})
	}
	q.forget("net.default-wanted")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = q.run(ctx) }()
	got := map[string]bool{<-m.told: true, <-m.told: true}
	if !got["later"] || !got["now"] {
		t.Errorf("told of %v, want later and now", got)
	}
	q.add("net.default-more", masterapi.DeleteEndpointRequest{EndpointID: "more"})
	if id := <-m.told; id != "more" {
		t.Errorf("told of %s, want more", id)
	}
	cancel()
	<-done
	if id := len(m.told); id != 0 {
		t.Errorf("told of %d deletions too many", id)
	}
}
