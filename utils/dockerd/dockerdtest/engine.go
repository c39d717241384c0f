// Package dockerdtest is a Docker Engine for tests: an Engine in memory, and its API on a
// socket. An Engine has the methods of dockerd.Client, and behaves as a Client of its own
// API does.
package dockerdtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Plugin is asked before a network of an Engine is created or removed, as an Engine asks its
// network driver; its error is the Engine's. A nil function agrees.
type Plugin struct {
	Create func(dockerd.Network) error // the network has its id
	Remove func(dockerd.Network) error
}

// Engine is a Docker Engine. Create it with New.
type Engine struct {
	plugin Plugin

	mu         sync.Mutex
	changed    signal.Signal
	next       int
	down       error
	networks   map[string]dockerd.Network   // by id
	containers map[string]dockerd.Container // those that run, by name
	plugins    map[string]string            // names of managed plugins, by id
}

// New makes an Engine with the network that every Engine has.
func New(p Plugin) *Engine {
	return &Engine{
		plugin:     p,
		networks:   map[string]dockerd.Network{"bridge0": {ID: "bridge0", Name: "bridge", Driver: "bridge", IPAMDriver: "default"}},
		containers: map[string]dockerd.Container{}, plugins: map[string]string{},
	}
}

// change changes what the Engine has, and tells who watches.
func (e *Engine) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.changed.Broadcast()
}

// ID returns an id that is new, beginning with kind.
func (e *Engine) ID(kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	return fmt.Sprintf("%s%04d%s", kind, e.next, strings.Repeat("0", 56))
}

// SetDown makes every request fail with err; nil brings the Engine back.
func (e *Engine) SetDown(err error) { e.change(func() { e.down = err }) }

// Put adds a network, or replaces the one of its id, without asking the plugin.
func (e *Engine) Put(n dockerd.Network) { e.change(func() { e.networks[n.ID] = n }) }

// Drop forgets a network without asking the plugin.
func (e *Engine) Drop(id string) { e.change(func() { delete(e.networks, id) }) }

// Start has a container run.
func (e *Engine) Start(c dockerd.Container) { e.change(func() { e.containers[c.Name] = c }) }

// Stop ends a container.
func (e *Engine) Stop(name string) { e.change(func() { delete(e.containers, name) }) }

// Install adds a managed plugin.
func (e *Engine) Install(id, name string) { e.change(func() { e.plugins[id] = name }) }

// Notify tells who watches that something has happened.
func (e *Engine) Notify() { e.change(func() {}) }

// Named returns the network of a name.
func (e *Engine) Named(name string) (dockerd.Network, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.networks {
		if n.Name == name {
			return n, true
		}
	}
	return dockerd.Network{}, false
}

// Container returns the container of a name, if it runs.
func (e *Engine) Container(name string) (dockerd.Container, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.containers[name]
	return c, ok
}

// Networks lists the networks, sorted by name and id.
func (e *Engine) Networks(context.Context) ([]dockerd.Network, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down != nil {
		return nil, e.down
	}
	out := make([]dockerd.Network, 0, len(e.networks))
	for _, n := range e.networks {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b dockerd.Network) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// Network returns the network of a name or an id.
func (e *Engine) Network(ctx context.Context, name string) (dockerd.Network, error) {
	all, err := e.Networks(ctx)
	if err != nil {
		return dockerd.Network{}, err
	}
	for _, n := range all {
		if n.Name == name || n.ID == name {
			return n, nil
		}
	}
	return dockerd.Network{}, errs.New(errs.NotFound, "network %s not found", name)
}

// CreateNetwork makes a network.
func (e *Engine) CreateNetwork(ctx context.Context, n dockerd.Network) (string, error) {
	if _, err := e.Network(ctx, n.Name); err == nil {
		return "", errs.New(errs.Exists, "network with name %s already exists", n.Name)
	} else if !errs.Is(err, errs.NotFound) {
		return "", err
	}
	n.ID = e.ID("net")
	if e.plugin.Create != nil {
		if err := e.plugin.Create(n); err != nil {
			return "", err
		}
	}
	e.Put(n)
	return n.ID, nil
}

// RemoveNetwork removes a network; one that is gone is no error.
func (e *Engine) RemoveNetwork(ctx context.Context, id string) error {
	n, err := e.Network(ctx, id)
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if used, err := e.Endpoints(ctx, id); err != nil || len(used) > 0 {
		return cmp.Or(err, errs.New(errs.InUse, "network %s has active endpoints", id))
	}
	if e.plugin.Remove != nil {
		if err := e.plugin.Remove(n); err != nil {
			return err
		}
	}
	e.Drop(id)
	return nil
}

// Endpoints lists the ids of a network's endpoints.
func (e *Engine) Endpoints(_ context.Context, networkID string) (ids []string, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down != nil {
		return nil, e.down
	}
	for _, c := range e.containers {
		for _, at := range c.Attachments {
			if at.NetworkID == networkID {
				ids = append(ids, at.EndpointID)
			}
		}
	}
	return ids, nil
}

// Containers lists the containers that run.
func (e *Engine) Containers(context.Context) ([]dockerd.Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down != nil {
		return nil, e.down
	}
	out := make([]dockerd.Container, 0, len(e.containers))
	for _, c := range e.containers {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b dockerd.Container) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// PluginName returns the name of a managed plugin.
func (e *Engine) PluginName(_ context.Context, id string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if name := e.plugins[id]; e.down != nil || name != "" {
		return name, e.down
	}
	return "", errs.New(errs.NotFound, "plugin %s not found", id)
}

// Watch calls changed at once, and after every change, until ctx ends.
func (e *Engine) Watch(ctx context.Context, changed func()) error {
	for {
		next := e.changed.Next()
		changed()
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
