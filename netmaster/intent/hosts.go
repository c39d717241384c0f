package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/state"
)

// hostRecords reads the records of hosts, by label. An unreadable record still counts as a
// host.
func (e *Engine) hostRecords(ctx context.Context) (map[string]state.Host, error) {
	kvs, _, err := e.store.List(ctx, state.HostRoot)
	if err != nil {
		return nil, fmt.Errorf("read the hosts: %w", err)
	}
	recs := make(map[string]state.Host, len(kvs))
	for _, kv := range kvs {
		var rec state.Host
		if json.Unmarshal(kv.Value, &rec) != nil {
			rec = state.Host{}
		}
		recs[strings.TrimPrefix(kv.Key, state.HostRoot)] = rec
	}
	return recs, nil
}

// Hosts returns what is stored of each host, by label: hosts with a record, and those on
// which endpoints are homed.
func (e *Engine) Hosts(ctx context.Context) (map[string]cluster.Known, error) {
	recs, err := e.hostRecords(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make(map[string]cluster.Known, len(recs))
	for label, rec := range recs {
		hosts[label] = cluster.Known{Label: label, VTEP: rec.VtepIP, CtrlIP: rec.CtrlIP, Node: rec.Node}
	}
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	for label, ids := range m.endpoints.ofHost.keys {
		if label == "" {
			continue
		}
		known := hosts[label]
		known.Label, known.Endpoints = label, ids.len()
		hosts[label] = known
	}
	return hosts, nil
}

// EndpointsOf lists the ids of the endpoints homed on a host, sorted.
func (e *Engine) EndpointsOf(label string) []string {
	e.model.mu.RLock()
	defer e.model.mu.RUnlock()
	return sortedKeys(e.model.endpoints.ofHost, label)
}

// RemoveEndpoint removes an endpoint. NotFound: it does not exist.
func (e *Engine) RemoveEndpoint(ctx context.Context, id string) error {
	_, err := e.deleteEndpoint(ctx, id)
	return err
}
