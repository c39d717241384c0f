package cluster

import (
	"context"
	"net/http"

	"github.com/contiv/netplugin/state/masterapi"
)

// PutHostRecords has records of a host changed; again is no harm.
func (m *Master) PutHostRecords(ctx context.Context, host string, r masterapi.HostRecords) error {
	var out struct{}
	_, err := m.call(ctx, http.MethodPut, masterapi.HostPath(host, masterapi.HostRecord), r, &out)
	return err
}

// present says that the agent of a host lives.
func (m *Master) present(ctx context.Context, host string, p masterapi.Presence) error {
	var out struct{}
	_, err := m.call(ctx, http.MethodPut, masterapi.HostPath(host, masterapi.HostPresence), p, &out)
	return err
}

// leave says that it has stopped.
func (m *Master) leave(ctx context.Context, host string) error {
	var out struct{}
	_, err := m.call(ctx, http.MethodDelete, masterapi.HostPath(host, masterapi.HostPresence), nil, &out)
	return err
}
