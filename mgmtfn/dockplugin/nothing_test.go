package dockplugin

import (
	"context"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// What a server has when nothing else exists.
type (
	noAgent  struct{}
	noPorts  struct{}
	noMaster struct{}
)

var errAlone = errs.New(errs.Unavailable, "nobody is there")

func (noAgent) Network(context.Context, string) (drivers.Network, error) {
	return drivers.Network{}, errAlone
}
func (noAgent) KnownNetwork(string) (drivers.Network, bool) { return drivers.Network{}, false }
func (noAgent) Topology() (docknet.Topology, bool, bool, <-chan struct{}) {
	return docknet.Topology{}, false, false, nil
}
func (noAgent) LocalEndpoints() []state.Endpoint { return nil }
func (noAgent) PortsChanged()                    {}
func (noAgent) Ready() error                     { return errAlone }

func (noPorts) Attach(context.Context, drivers.Attachment, ofnet.Encap, uint16) (drivers.Port, error) {
	return drivers.Port{}, errAlone
}
func (noPorts) Detach(context.Context, string) error   { return nil }
func (noPorts) Attachments() []drivers.Attachment      { return nil }
func (noPorts) Realised(context.Context, string) error { return errAlone }
func (noPorts) Ready() error                           { return errAlone }

func (noMaster) AllocAddress(context.Context, masterapi.AllocAddressRequest) (masterapi.AllocAddressResponse, error) {
	return masterapi.AllocAddressResponse{}, errAlone
}

func (noMaster) ReleaseAddress(context.Context, masterapi.ReleaseAddressRequest) error {
	return errAlone
}

func (noMaster) CreateEndpoint(context.Context, masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	return state.Endpoint{}, errAlone
}

func (noMaster) DeleteEndpoint(context.Context, masterapi.DeleteEndpointRequest) error {
	return errAlone
}

func (noMaster) UpdateEndpoint(context.Context, masterapi.UpdateEndpointRequest) error {
	return errAlone
}

func (noMaster) CreateNetwork(context.Context, contivmodel.Network) error { return errAlone }
func (noMaster) DeleteNetwork(context.Context, string) error              { return errAlone }

func discard() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// ended returns a context that has ended.
func ended() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

func (noMaster) PutHostRecords(context.Context, string, masterapi.HostRecords) error { return errAlone }
