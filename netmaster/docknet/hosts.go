package docknet

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// DefaultPatience is how long Hosts waits for agents: one whose Engine has just ended does
// not create a docker network, and has not reported that yet.
const DefaultPatience = 2 * time.Second

// Hosts waits for the agents, each of which makes the docker networks of its own Engine.
type Hosts struct {
	Store    objdb.Store
	Patience time.Duration // 0 means DefaultPatience
}

// Settle waits until the Engine of every registered host has the docker network, or until
// its patience is over: agents make it when they can. It does not wait for hosts without
// Engine.
func (h Hosts) Settle(ctx context.Context, p state.NetworkRef) error {
	patience := h.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing, err := h.registered(ctx)
	if err != nil || len(missing) == 0 {
		return nil // nobody to wait for
	}
	for batch := range h.Store.Watch(ctx, docknet.HostRoot) {
		for _, ev := range batch.Events {
			host, id, _ := strings.Cut(strings.TrimPrefix(ev.KV.Key, docknet.HostRoot), "/")
			if ev.Deleted {
				continue
			}
			var r docknet.Record
			if id == docknet.NoEngine || json.Unmarshal(ev.KV.Value, &r) == nil && r.ID == docknet.Key(p) {
				delete(missing, host)
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return nil
}

// Run does nothing: agents create the docker networks.
func (Hosts) Run(context.Context) {}

// Keep does nothing: Release has not removed anything.
func (Hosts) Keep(state.NetworkRef) {}

// Release does nothing: agents remove the docker network of a deleted object.
func (Hosts) Release(context.Context, state.NetworkRef) error { return nil }

// registered returns the labels of the hosts whose agents are registered.
func (h Hosts) registered(ctx context.Context) (map[string]bool, error) {
	kvs, _, err := h.Store.List(ctx, state.ServiceRoot+"netplugin/")
	if err != nil {
		return nil, err
	}
	labels := map[string]bool{}
	for _, kv := range kvs {
		var info objdb.ServiceInfo
		if json.Unmarshal(kv.Value, &info) == nil && info.Hostname != "" {
			labels[info.Hostname] = true
		}
	}
	return labels, nil
}
