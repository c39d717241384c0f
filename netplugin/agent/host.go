package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

func (a *Agent) kickHost() {
	select {
	case a.hostKick <- struct{}{}:
	default:
	}
}

// SetNode says that the cluster of Kubernetes has a Node for this host: when it has no
// more, netmaster need not wait to give up on a host that is down.
func (a *Agent) SetNode(name string) {
	a.mu.Lock()
	a.node = name
	a.mu.Unlock()
	a.kickHost()
}

// HostChanged says that this host's addresses may have changed.
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

// publishHost keeps this host's record current. The record stays when the
// agent goes: the host's containers remain reachable.
func (a *Agent) publishHost(ctx context.Context) error {
	key := state.HostRoot + a.cfg.HostLabel
	again := retry.New(time.Second, 5*time.Second)
	for {
		value, err := json.Marshal(a.hostRecord())
		if err != nil {
			return err
		}
		var due <-chan time.Time
		if err := putIfDifferent(ctx, a.cfg.Store, key, value); err != nil && ctx.Err() == nil {
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

// compareMTU warns of a host through whose tunnels other packets fit than through ours:
// large ones get lost on the way, and nobody says so.
func (a *Agent) compareMTU(rec state.Host) {
	if a.cfg.MTU != 0 && rec.MTU != 0 && rec.MTU != a.cfg.MTU {
		a.cfg.Log.WithFields(logrus.Fields{"host": rec.ID, "mtu": rec.MTU, "own": a.cfg.MTU}).
			Warn("another host's tunnels have another MTU; make those of the underlay equal")
	}
}

func putIfDifferent(ctx context.Context, store objdb.Store, key string, value []byte) error {
	kv, err := store.Get(ctx, key)
	if err == nil && string(kv.Value) == string(value) {
		return nil
	}
	if err != nil && !errs.Is(err, errs.NotFound) {
		return err
	}
	if _, err := store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}
