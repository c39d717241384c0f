// Package infra gives the host an endpoint of its own in every infra network. The port
// and its address follow from the endpoint's record, like a container's.
package infra

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/retry"
)

// Agent knows what is missing.
type Agent interface {
	// MissingInfra lists the infra networks in which the host has no endpoint, and a
	// channel that is closed when that may have changed.
	MissingInfra() ([]drivers.Network, <-chan struct{})
}

// Master makes endpoints; asking again returns the same one.
type Master interface {
	CreateEndpoint(context.Context, masterapi.CreateEndpointRequest) (state.Endpoint, error)
}

const (
	callTimeout = 10 * time.Second
	slowest     = 10 * time.Second // between two tries
)

// Keep asks for the endpoints that are missing until ctx ends.
func Keep(ctx context.Context, host string, a Agent, m Master, log logrus.FieldLogger) error {
	said, again := "", retry.New(100*time.Millisecond, slowest)
	for {
		missing, changed := a.MissingInfra()
		err := create(ctx, host, missing, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var due <-chan time.Time
		if err == nil {
			said = ""
			again.Reset()
		} else {
			due = time.After(again.Next())
			if err.Error() != said {
				log.WithError(err).Warn("cannot create this host's endpoint in an infra network; retrying")
				said = err.Error()
			}
		}
		// A change is no reason to ask again at once for what was refused.
		if due != nil {
			changed = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-due:
		}
	}
}

// create asks for one endpoint after the other and returns the first error.
func create(ctx context.Context, host string, missing []drivers.Network, m Master) error {
	var first error
	for _, n := range missing {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := m.CreateEndpoint(call, masterapi.CreateEndpointRequest{
			TenantName: n.Tenant, NetworkName: n.Name, EndpointID: host, EPCommonName: host,
			ConfigEP: masterapi.ConfigEP{Container: host, Host: host},
		})
		cancel()
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}
