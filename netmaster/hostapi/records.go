package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

func networksOf(label string) string { return docknet.HostRoot + label + "/" }

// putRecords changes what a host has.
func (s *Server) putRecords(ctx context.Context, label string, body []byte) (any, error) {
	var req masterapi.HostRecords
	if err := contivmodel.DecodeJSON(body, &req); err != nil {
		return nil, err
	}
	if err := check(label, req); err != nil {
		return nil, err
	}
	if !s.cfg.Swarm && len(req.Swarm)+len(req.SwarmGone) > 0 {
		return nil, errs.New(errs.Invalid, "docker networks of a swarm: this cluster is none (netmaster --mode)")
	}
	ops, err := s.operations(ctx, label, req)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(ops, min(s.cfg.Store.MaxOps(), 32)) {
		if _, err := s.cfg.fenced(ctx, part...); err != nil {
			return nil, fmt.Errorf("write the records of host %s: %w", label, err)
		}
	}
	for _, rec := range req.SwarmGone {
		key, value, err := stored(rec)
		if err != nil {
			return nil, err
		}
		_, err = s.cfg.commit(ctx, []objdb.Cmp{objdb.HasValue(key, value)}, objdb.Delete(key))
		if err != nil && !errors.Is(err, objdb.ErrCompareFailed) { // there is another docker network for it
			return nil, fmt.Errorf("delete docker network %.12s: %w", rec.DocknetUUID, err)
		}
	}
	return struct{}{}, nil
}

func stored(rec docknet.Record) (key string, value []byte, err error) {
	value, err = json.Marshal(rec)
	return docknet.Root + rec.ID, value, err
}

// operations are what changes, in the order of keys.
func (s *Server) operations(ctx context.Context, label string, req masterapi.HostRecords) ([]objdb.Op, error) {
	want := map[string]any{} // nil: to be removed
	if req.Host != nil {
		want[state.HostRoot+label] = *req.Host
	}
	for id, rec := range req.DockerNetworks {
		want[networksOf(label)+id] = orNil(rec)
	}
	if req.NoEngine != nil {
		want[networksOf(label)+docknet.NoEngine] = nil
		if *req.NoEngine {
			want[networksOf(label)+docknet.NoEngine] = struct{}{}
		}
	}
	for _, rec := range req.Swarm {
		want[docknet.Root+rec.ID] = rec
	}
	for id, rec := range req.Endpoints {
		mine, err := s.mine(ctx, label, id, rec)
		if err != nil {
			return nil, err
		}
		if mine {
			want[state.OperEndpointRt+id] = orNil(rec)
		}
	}
	ops := make([]objdb.Op, 0, len(want))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] == nil {
			ops = append(ops, objdb.Delete(key))
			continue
		}
		value, err := json.Marshal(want[key])
		if err != nil {
			return nil, errs.Wrap(errs.Internal, err)
		}
		ops = append(ops, objdb.Put(key, value))
	}
	return ops, nil
}

func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// mine says whether an operational record may be written, or removed, for a host: the
// endpoint is homed there; or the record is, if it goes. An endpoint that has gone or moved in
// the meantime is no error: the host will learn of that.
func (s *Server) mine(ctx context.Context, label, id string, rec *state.OperEndpoint) (bool, error) {
	root := state.EndpointRoot
	if rec == nil {
		root = state.OperEndpointRt
	}
	kv, err := s.cfg.Store.Get(ctx, root+id)
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	var owner struct {
		HomingHost string `json:"homingHost"`
	}
	if err == nil {
		err = json.Unmarshal(kv.Value, &owner)
	}
	return err == nil && owner.HomingHost == label, err
}

// check refuses what is not a host's own, or is no record.
func check(label string, req masterapi.HostRecords) error {
	if label == "" || len(label) > maxLabel || strings.ContainsAny(label, "/\x00") {
		return errs.New(errs.Invalid, "host label %.64q: expected 1 to %d bytes without a slash", label, maxLabel)
	}
	if n := len(req.Endpoints) + len(req.DockerNetworks) + len(req.Swarm) + len(req.SwarmGone); n > masterapi.MaxHostRecords {
		return errs.New(errs.Invalid, "%d records in one request, at most %d are taken", n, masterapi.MaxHostRecords)
	}
	if req.Host != nil {
		if err := checkHost(label, *req.Host); err != nil {
			return err
		}
	}
	for id, rec := range req.Endpoints {
		if err := checkID("endpoint", id); err != nil {
			return err
		}
		if rec != nil && (rec.ID != id || rec.HomingHost != label) {
			return errs.New(errs.Invalid, "operational record %q of endpoint %q, host %q: expected one of host %s", id, rec.ID, rec.HomingHost, label)
		}
	}
	for id, rec := range req.DockerNetworks {
		if err := checkID("docker network", id); err != nil {
			return err
		}
		if id == docknet.NoEngine || rec != nil && rec.DocknetUUID != id {
			return errs.New(errs.Invalid, "docker network %q: the record is of %q", id, rec.DocknetUUID)
		}
	}
	for _, rec := range slices.Concat(req.Swarm, req.SwarmGone) {
		if err := errors.Join(checkID("docker network", rec.DocknetUUID), checkID("record", rec.ID)); err != nil {
			return err
		}
		if rec.ID != docknet.Key(rec.Ref()) {
			return errs.New(errs.Invalid, "docker network %.12s: record %q does not belong to network %s", rec.DocknetUUID, rec.ID, docknet.Name(rec.Ref()))
		}
	}
	return nil
}

func checkID(what, id string) error {
	if id == "" || len(id) > maxText/2 || strings.ContainsAny(id, "/\x00") {
		return errs.New(errs.Invalid, "%s %.64q: expected an id of 1 to %d bytes without a slash", what, id, maxText/2)
	}
	return nil
}

// maxAddresses bounds the addresses of one host.
const maxAddresses = 4096

func checkHost(label string, h state.Host) error {
	if h.ID != label {
		return errs.New(errs.Invalid, "record of host %q: expected host %s", h.ID, label)
	}
	if len(h.Addresses) > maxAddresses || len(h.Node) > maxLabel || h.MTU < 0 || h.MTU > 1<<16 {
		return errs.New(errs.Invalid, "record of host %s: expected at most %d addresses, a Node's name and an MTU", label, maxAddresses)
	}
	for _, text := range slices.Concat([]string{h.VtepIP, h.CtrlIP}, h.Addresses) {
		if _, err := netip.ParseAddr(text); err != nil {
			return errs.New(errs.Invalid, "record of host %s: %.64q is not an IP address", label, text)
		}
	}
	return nil
}
