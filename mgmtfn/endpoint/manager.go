package endpoint

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/keylock"
)

// Master is what is needed from netmaster.
type Master interface {
	CreateEndpoint(context.Context, masterapi.CreateEndpointRequest) (state.Endpoint, error)
	DeleteEndpoint(context.Context, masterapi.DeleteEndpointRequest) error
}

// Agent is what is needed from the agent.
type Agent interface {
	Network(ctx context.Context, id string) (drivers.Network, error)
	KnownNetwork(id string) (drivers.Network, bool)
	LocalEndpoints() []state.Endpoint
}

// Config configures a Manager.
type Config struct {
	HostLabel string
	Master    Master
	Agent     Agent
	Ports     drivers.Ports
	// PortsChanged is called after a port was added or removed.
	PortsChanged func()
	// Removing is called before an endpoint is removed, with its record if it is known;
	// may be nil.
	Removing func(Endpoint)
	Log      logrus.FieldLogger
}

// Manager creates and removes the endpoints of one container runtime on this host.
type Manager struct {
	cfg   Config
	turns keylock.Locks
	queue *queue
}

// New makes a Manager; queued deletions are delivered by Run.
func New(cfg Config) *Manager { return &Manager{cfg: cfg, queue: newQueue(cfg.Master, cfg.Log)} }

// Run delivers queued deletions until ctx ends.
func (m *Manager) Run(ctx context.Context) error { return m.queue.run(ctx) }

// Lock waits for the lock of an endpoint, by its name: calls for one endpoint must run one
// at a time. The caller of Create, Undo and Remove must hold it.
func (m *Manager) Lock(ctx context.Context, name string) (release func(), err error) {
	return m.turns.Lock(ctx, name)
}

// Queued returns how many deletions have not been sent to netmaster.
func (m *Manager) Queued() int { return m.queue.len() }

// How long a caller waits for netmaster when something is released, and how long undoing a
// failed creation may take in all.
const (
	masterShare = 3 * time.Second
	undoWithin  = 5 * time.Second
)

// Share limits the wait for netmaster when something is released. While deletions are
// queued it is zero: somebody has waited for netmaster already, and containers are removed
// one after the other.
func (m *Manager) Share(ctx context.Context) (context.Context, context.CancelFunc) {
	share := masterShare
	if m.queue.len() > 0 {
		share = 0
	}
	return context.WithTimeout(ctx, share)
}
