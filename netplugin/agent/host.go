package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

func (a *Agent) kickHost() {
	select {
	case a.hostKick <- struct{}{}:
	default:
	}
}

// SetNode records the Kubernetes Node of this host: once the Node is
// deleted, netmaster removes a host that is down without waiting.
func (a *Agent) SetNode(name string) {
	a.mu.Lock()
	a.node = name
	a.mu.Unlock()
	a.kickHost()
}

// HostChanged is called when this host's addresses may have changed.
func (a *Agent) HostChanged() { a.kickHost() }

// hostRecord is what this host's record should be.
func (a *Agent) hostRecord() state.Host {
	a.mu.Lock()
	defer a.mu.Unlock()
	rec := state.Host{ID: a.cfg.HostLabel, VtepIP: a.cfg.VTEP.String(), CtrlIP: a.cfg.CtrlIP.String(), MTU: a.cfg.MTU, Node: a.node}
	if a.cfg.Addresses != nil {
		for _, addr := range a.cfg.Addresses() {
			rec.Addresses = append(rec.Addresses, addr.String())
		}
		slices.Sort(rec.Addresses)
	}
	return rec
}

// askWithin bounds one request to netmaster, so that a failure is logged soon.
const askWithin = 10 * time.Second

// publishHost keeps this host's record current. The record stays when the
// agent stops: the host's containers remain reachable.
func (a *Agent) publishHost(ctx context.Context) error {
	again := retry.New(time.Second, 5*time.Second)
	for {
		var due <-chan time.Time
		rec := a.hostRecord()
		if err := a.putHost(ctx, rec); err != nil && ctx.Err() == nil {
			a.cfg.Log.WithError(err).Warn("cannot publish this host; retrying")
			due = time.After(again.Next())
		} else {
			again.Reset()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.hostKick:
		case <-due:
		}
	}
}

// putHost has the record written unless the stored one is equal.
func (a *Agent) putHost(ctx context.Context, rec state.Host) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	want, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	kv, err := a.cfg.Store.Get(ctx, state.HostRoot+a.cfg.HostLabel)
	if err == nil && string(kv.Value) == string(want) {
		return nil
	}
	if err != nil && !errs.Is(err, errs.NotFound) {
		return err
	}
	if err := a.cfg.Master.PutHostRecords(ctx, a.cfg.HostLabel, masterapi.HostRecords{Host: &rec}); err != nil {
		return err
	}
	a.cfg.Log.WithFields(logrus.Fields{"vtep": rec.VtepIP, "mtu": rec.MTU, "node": rec.Node}).Info("host published")
	return nil
}

// compareMTU warns of a host whose tunnel MTU differs from ours:
// large packets would be lost silently.
func (a *Agent) compareMTU(rec state.Host) {
	if a.cfg.MTU != 0 && rec.MTU != 0 && rec.MTU != a.cfg.MTU {
		a.cfg.Log.WithFields(logrus.Fields{"host": rec.ID, "mtu": rec.MTU, "own": a.cfg.MTU}).
			Warn("another host's tunnels have another MTU; make those of the underlay equal")
	}
}
