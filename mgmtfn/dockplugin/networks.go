package dockplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
)

// networks keeps the Engine's docker networks equal to Contiv's networks and groups. Those
// created by users are left alone.
type networks struct {
	s      *Server
	names  *delta.Map[string, dockerd.Network]
	failed map[string]string // the last error logged for a name
	driver string            // the plugin's name; "" until the Engine has told
}

func newNetworks(s *Server) *networks {
	return &networks{s: s, names: delta.New[string](docknet.Same), failed: map[string]string{}, driver: s.cfg.Driver}
}

// pass reads the Engine's networks and resolves every difference it can.
func (w *networks) pass(ctx context.Context) error {
	mark := w.s.dir.mark()
	list, err := w.s.cfg.Engine.Networks(ctx)
	w.s.engine.answered(err)
	if err != nil {
		return err
	}
	if w.driver == "" {
		if w.driver, err = w.s.cfg.Engine.PluginName(ctx, w.s.cfg.PluginID); err != nil {
			return err
		}
		w.s.cfg.Log.WithField("name", w.driver).Info("creating docker networks with this driver name")
	}
	t, aci, _, _ := w.s.cfg.Agent.Topology()
	records := map[string]docknet.Record{}
	for _, n := range list {
		if !docknet.SameDriver(n.Driver, w.driver) {
			continue
		}
		if p, ok := t.Of(n); ok {
			records[n.ID] = docknet.NewRecord(p, n)
		}
	}
	w.s.dir.replace(records, mark)
	if w.s.cfg.Swarm {
		return w.s.finishFreed(ctx)
	}
	if w.s.cfg.Scope == ScopeGlobal {
		return nil
	}
	return w.settle(ctx, list, t.Wanted(w.driver, aci), records)
}

// settle creates what is missing and removes what is no longer wanted. It continues if one
// fails.
func (w *networks) settle(ctx context.Context, list []dockerd.Network, want map[string]dockerd.Network, records map[string]docknet.Record) error {
	foreign := map[string]error{} // names used by others
	have := map[string]dockerd.Network{}
	for _, n := range list {
		_, twice := have[n.Name]
		switch {
		case docknet.SameDriver(n.Driver, w.driver) && docknet.Ours(n) && !twice:
			have[n.Name] = n
		case !docknet.SameDriver(n.Driver, w.driver):
			foreign[n.Name] = errs.New(errs.Exists, "network name used by another driver: docker network %s has driver %s, rename it", n.Name, n.Driver)
		case records[n.ID].ID != want[n.Name].Labels[docknet.Label]:
			foreign[n.Name] = errs.New(errs.Exists, "docker network %s, made by hand, belongs to another network or group, rename it", n.Name)
		default: // created by a user, and as good as ours
			foreign[n.Name] = nil
		}
	}
	for name := range foreign {
		if _, wanted := want[name]; !wanted {
			delete(foreign, name)
		}
		delete(want, name)
	}
	w.names.ReplaceActual(have)
	w.names.ReplaceDesired(want)
	pending := map[string]delta.Change[string, dockerd.Network]{}
	for c := range w.names.Pending() {
		pending[c.Key] = c
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		err := w.apply(ctx, pending[name])
		w.report(name, err)
		if err != nil {
			failed = append(failed, err)
		}
	}
	for name, err := range foreign {
		w.report(name, err)
	}
	return errors.Join(failed...)
}

func (w *networks) apply(ctx context.Context, c delta.Change[string, dockerd.Network]) error {
	log := w.s.cfg.Log.WithFields(logrus.Fields{"docknet": c.Key, "change": c.Op.String()})
	if c.Op != delta.Add {
		if err := w.s.cfg.Engine.RemoveNetwork(ctx, c.Have.ID); err != nil {
			return fmt.Errorf("replace docker network %s: %w", c.Key, err)
		}
		w.s.dir.forget(c.Have.ID)
	}
	if c.Op != delta.Remove {
		id, err := w.s.cfg.Engine.CreateNetwork(ctx, c.Want)
		if err != nil {
			return fmt.Errorf("docker network %s: %w", c.Key, err)
		}
		if p, ok := docknet.OfOptions(c.Want.Options); ok {
			c.Want.ID = id
			w.s.dir.learn(id, docknet.NewRecord(p, c.Want))
		}
		log = log.WithField("id", id)
	}
	w.names.Applied(c)
	log.Info("docker network updated")
	return nil
}

// report logs what is wrong with a docker network, once.
func (w *networks) report(name string, err error) {
	if err == nil {
		delete(w.failed, name)
		return
	}
	if w.failed[name] != err.Error() {
		w.failed[name] = err.Error()
		w.s.cfg.Log.WithError(err).WithField("docknet", name).Warn("cannot create or remove a docker network; retrying")
	}
}
