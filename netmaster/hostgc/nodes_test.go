package hostgc

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/signal"
)

// nodesGone is a Kubernetes cluster whose Nodes have been deleted, by name.
type nodesGone struct {
	mu      sync.Mutex
	gone    map[string]bool
	changed signal.Signal
}

func (n *nodesGone) Gone(_ context.Context, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone[name]
}

func (n *nodesGone) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed.Next()
}

func (n *nodesGone) remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[name] = true
	n.changed.Broadcast()
}

// TestDeletedNode: the grace period does not apply to a host whose Node was deleted; a host that
// is registered, whose Node exists or that never was one keeps everything.
func TestDeletedNode(t *testing.T) {
	h := newHosts(t)
	hosts := []string{"alive", "away", "dead", "plain"}
	nodes := &nodesGone{gone: map[string]bool{"node-of-alive": true}}
	for _, host := range hosts {
		h.register(host)
		h.put(state.HostRoot+host, `{"id":"`+host+`","vtepIP":"10.9.0.2","node":"node-of-`+host+`"}`)
	}
	h.put(state.HostRoot+"plain", `{"id":"plain","vtepIP":"10.9.0.2"}`)
	e, _ := h.leadWith(Config{Grace: time.Hour, Nodes: nodes})
	networkN1(t, e)
	for _, host := range hosts {
		h.endpoint(e, "c-"+host, host)
	}
	for _, host := range hosts[1:] {
		h.leave(host)
	}
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLeft("hosts down", downRoot, "away", "dead", "plain")
	nodes.remove("node-of-dead") // which is noticed by itself
	h.eventually("the host whose Node is gone is removed", func() bool { return len(h.left(downRoot)) == 2 })
	h.wantLeft("hosts", state.HostRoot, "alive", "away", "plain")
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-c-alive", "n1.default-c-away", "n1.default-c-plain")
	h.wantLeft("operational records", state.OperEndpointRt, "n1.default-c-alive", "n1.default-c-away", "n1.default-c-plain")
}
