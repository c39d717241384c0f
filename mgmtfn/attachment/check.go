package attachment

import (
	"context"
	"fmt"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/utils/errs"
)

// Status returns why Add cannot work, or nil (CNI STATUS).
func (a *Attacher) Status() error {
	if err := a.cfg.Ports.Serving(); err != nil {
		return &Failure{StepSwitch, codes[StepSwitch], err}
	}
	if err := a.cfg.Agent.Ready(); err != nil {
		return &Failure{StepAgent, codes[StepAgent], err}
	}
	return nil
}

// Check verifies an attachment (CNI CHECK). It uses the request's container, interface and
// namespace.
func (a *Attacher) Check(ctx context.Context, req Request) error {
	name := endpoint.Name(req.ContainerID, req.IfName)
	for _, rec := range a.cfg.Agent.LocalEndpoints() {
		if rec.EndpointID != name {
			continue
		}
		port, ok := a.portOf(rec.ID)
		if !ok {
			return failed(StepInterface, fmt.Errorf("endpoint %s has no port in the switch", rec.ID))
		}
		n, err := a.cfg.Agent.Network(ctx, rec.NetID)
		if err != nil {
			return failed(StepEndpoint, err)
		}
		ifc, err := containerInterface(req, rec, n, port)
		if err != nil {
			return failed(StepEndpoint, err)
		}
		if err := ifc.verify(); err != nil {
			return err
		}
		return failed(StepEndpoint, a.cfg.Ports.Realised(ctx, rec.ID))
	}
	return failed(StepEndpoint, errs.New(errs.NotFound, "container %s has no endpoint on host %s", req.ContainerID, a.cfg.HostLabel))
}

func (a *Attacher) portOf(endpointID string) (drivers.Port, bool) {
	for _, at := range a.cfg.Ports.Attachments() {
		if at.EndpointID == endpointID {
			return at.Port, true
		}
	}
	return drivers.Port{}, false
}
