package dockplugin

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/dockerd"
)

// DefaultSocket is where an Engine looks for a plugin called netplugin.
const DefaultSocket = "/run/docker/plugins/netplugin.sock"

// Scopes of docker networks.
const (
	ScopeLocal  = "local"  // every agent makes those of its own Engine
	ScopeGlobal = "global" // netmaster makes them, the Engines share them through a store
)

// DefaultGrace is longer than any container takes to start.
const DefaultGrace = 2 * time.Minute

// DefaultEngineGrace is longer than an Engine takes to restart.
const DefaultEngineGrace = 30 * time.Second

// Master is what is needed from netmaster.
type Master interface {
	AllocAddress(context.Context, masterapi.AllocAddressRequest) (masterapi.AllocAddressResponse, error)
	ReleaseAddress(context.Context, masterapi.ReleaseAddressRequest) error
	endpoint.Master
	UpdateEndpoint(context.Context, masterapi.UpdateEndpointRequest) error
	CreateNetwork(context.Context, contivmodel.Network) error
	DeleteNetwork(ctx context.Context, key string) error
	PutHostRecords(ctx context.Context, host string, r masterapi.HostRecords) error
}

// Agent is what is needed from the agent.
type Agent interface {
	endpoint.Agent
	Topology() (t docknet.Topology, aci, known bool, changed <-chan struct{})
	PortsChanged()
	Ready() error
}

// Ports is what is needed from the driver.
type Ports interface {
	drivers.Ports
	Ready() error
}

// Engine is what is needed from the Docker Engine, outside of calls; see dockerd.Client.
type Engine interface {
	Networks(ctx context.Context) ([]dockerd.Network, error)
	CreateNetwork(ctx context.Context, n dockerd.Network) (string, error)
	RemoveNetwork(ctx context.Context, id string) error
	Endpoints(ctx context.Context, networkID string) ([]string, error)
	Containers(ctx context.Context) ([]dockerd.Container, error)
	Watch(ctx context.Context, changed func()) error
	PluginName(ctx context.Context, id string) (string, error)
}

// Config configures a Server.
type Config struct {
	HostLabel string
	// Driver is the plugin's name in the Engine. If empty, it is that of the managed
	// plugin with the id PluginID.
	Driver, PluginID string
	// Scope is ScopeLocal or ScopeGlobal.
	Scope string
	// Swarm is set if the Engine is part of a swarm and its users create the networks.
	Swarm  bool
	Store  objdb.Store // read only
	Master Master
	Agent  Agent
	Ports  Ports
	Engine Engine
	// Grace is how long an endpoint that the Engine knows must be without container
	// before it is removed; 0 means DefaultGrace.
	Grace time.Duration
	// EngineGrace is how long the Engine must be down before netmaster is told not to
	// wait for its docker networks; 0 means DefaultEngineGrace.
	EngineGrace time.Duration
	Log         logrus.FieldLogger
}
