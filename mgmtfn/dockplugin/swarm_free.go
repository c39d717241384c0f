package dockplugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// freeNetwork undoes allocateNetwork; what is gone is no error. The swarm does not ask
// again when it fails, and its last tasks may be running yet: what cannot be removed now
// is removed by whichever agent can.
func (s *Server) freeNetwork(ctx context.Context, req cnm.NetworkRequest) (cnm.Empty, error) {
	if !s.cfg.Swarm {
		return cnm.Empty{}, nil
	}
	r, ok := s.dir.sharedBy(req.NetworkID)
	if !ok {
		return cnm.Empty{}, nil
	}
	r.Freed = true
	if err := s.put(ctx, masterapi.HostRecords{Swarm: []docknet.Record{r}}); err != nil {
		return cnm.Empty{}, fmt.Errorf("write to the store that docker network %.12s is gone: %w", req.NetworkID, err)
	}
	if err := s.finishFree(ctx, r); err != nil {
		s.cfg.Log.WithError(err).WithField("docknet", req.NetworkID).Warn("cannot remove the network of a docker network that is gone; retrying")
		s.engine.wake()
	}
	return cnm.Empty{}, nil
}

// releaseHeld says that the manager holds none of the addresses of a docker network: none that
// it does not ask for again, or, with its network gone, none at all.
func (s *Server) releaseHeld(ctx context.Context, p state.NetworkRef, gone bool) error {
	err := s.cfg.Master.ReleaseAddress(ctx, masterapi.ReleaseAddressRequest{NetworkID: ownerOf(p), Held: true, Gone: gone})
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// finishFree removes the network that was made for a docker network that is gone, then
// the record.
func (s *Server) finishFree(ctx context.Context, r docknet.Record) error {
	if err := s.releaseHeld(ctx, r.Ref(), true); err != nil {
		return err
	}
	if r.NetworkName == r.DocknetUUID {
		err := s.cfg.Master.DeleteNetwork(ctx, r.TenantName+":"+r.NetworkName)
		if err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	if err := s.put(ctx, masterapi.HostRecords{SwarmGone: []docknet.Record{r}}); err != nil {
		return fmt.Errorf("delete docker network %.12s from the store: %w", r.DocknetUUID, err)
	}
	return nil
}

// finishFreed does so for all that are left.
func (s *Server) finishFreed(ctx context.Context) error {
	var failed []error
	for _, r := range s.dir.freed() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		err := s.finishFree(ctx, r)
		cancel()
		if err != nil && !errs.Is(err, errs.InUse) { // the end of a container wakes us
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
