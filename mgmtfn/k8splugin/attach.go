package k8splugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/deletions"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/keylock"
)

// Master is what the attacher asks of netmaster.
type Master interface {
	CreateEndpoint(context.Context, masterapi.CreateEndpointRequest) (state.Endpoint, error)
	DeleteEndpoint(context.Context, masterapi.DeleteEndpointRequest) error
}

// Agent is what it asks of the agent.
type Agent interface {
	Network(ctx context.Context, id string) (drivers.Network, error)
	KnownNetwork(id string) (drivers.Network, bool)
	LocalEndpoints() []state.Endpoint
	PortsChanged()
	Ready() error
}

// Ports is what it asks of the driver.
type Ports interface {
	Attach(ctx context.Context, a drivers.Attachment, encap ofnet.Encap, tag uint16) (drivers.Port, error)
	Detach(ctx context.Context, endpointID string) error
	Attachments() []drivers.Attachment
	Realised(ctx context.Context, endpointID string) error
	Ready() error
}

// Place says where a container belongs.
type Place struct{ Tenant, Network, Group string }

// NetworkID is the id of the place's network.
func (p Place) NetworkID() string { return state.NetworkID(p.Network, p.Tenant) }

// Config says what an attacher works with.
type Config struct {
	HostLabel string
	Master    Master
	Agent     Agent
	Ports     Ports
	// Placer finds a pod's place from its labels; nil when no API server is configured.
	Placer func(ctx context.Context, req cniapi.PodRequest) (Place, error)
	// Guards holds pods to network policies; nil when nobody does.
	Guards Guards
	Log    logrus.FieldLogger
}

// Guards holds pods to network policies.
type Guards interface {
	// Await waits until a pod that has a port is declared to be held to its policies.
	// It has a time limit of its own.
	Await(ctx context.Context, namespace, name, uid string) error
	// PortsChanged says that a pod was attached or detached.
	PortsChanged()
}

// codedError is an error with the CNI code it is to be reported with.
type codedError struct {
	code uint
	msg  string // the original's short text, without the prefix "Contiv:"
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// coded tags err; what a repetition may cure is reported so, whatever the step.
func coded(code uint, msg string, err error) error {
	if err == nil {
		return nil
	}
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Timeout, errs.Conflict:
		code = cniapi.CodeTryLater
	case errs.Exhausted:
		code = cniapi.CodeExhausted
	}
	return &codedError{code, msg, err}
}

// Texts of the original.
const (
	msgLabels    = "Error getting labels"
	msgEndpoint  = "Error creating EP"
	msgNetns     = "Error moving to netns"
	msgInterface = "Error setting interface attributes"
	msgRoutes    = "Error setting default gateway"
)

// attacher attaches and detaches. Calls about one attachment are served one at a time.
type attacher struct {
	cfg     Config
	turns   keylock.Locks
	pending *deletions.Queue
}

func newAttacher(cfg Config) *attacher {
	return &attacher{cfg: cfg, pending: deletions.New(cfg.Master, cfg.Log)}
}

// endpointName is the endpoint's id inside its network: the container's for the first
// interface, with the interface's name for further ones.
func endpointName(containerID, ifName string) string {
	if ifName == "" || ifName == "eth0" {
		return containerID
	}
	return containerID + "-" + ifName
}

// add attaches a container; repeated for the same attachment it returns the same.
func (a *attacher) add(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
	if req.ContainerID == "" || req.Netns == "" || req.IfName == "" {
		return cniapi.PodReply{}, &codedError{
			cniapi.CodeInvalidEnv, msgEndpoint,
			fmt.Errorf("container id %q, network namespace %q and interface name %q must all be given", req.ContainerID, req.Netns, req.IfName),
		}
	}
	if err := ns.IsNSorErr(req.Netns); err != nil {
		return cniapi.PodReply{}, &codedError{cniapi.CodeNetns, msgNetns, fmt.Errorf("network namespace %s: %w", req.Netns, err)}
	}
	release, err := a.turns.Lock(ctx, req.ContainerID+"/"+req.IfName)
	if err != nil {
		return cniapi.PodReply{}, coded(cniapi.CodeTryLater, msgEndpoint, err)
	}
	defer release()

	place, err := a.place(ctx, req)
	if err != nil {
		return cniapi.PodReply{}, coded(cniapi.CodePodLookup, msgLabels, err)
	}
	rec, port, err := a.reserve(ctx, req, place)
	if err == nil {
		var reply cniapi.PodReply
		if reply, err = a.connect(ctx, req, rec, port); err == nil {
			a.portsChanged()
			a.cfg.Log.WithFields(logrus.Fields{"endpoint": rec.ID, "ip": reply.IPAddress, "port": port.OVSName}).Info("container attached")
			return reply, nil
		}
	}
	a.undo(place, endpointName(req.ContainerID, req.IfName))
	return cniapi.PodReply{}, err
}

// place finds the container's tenant, network and group: what the network
// configuration or CNI_ARGS say, else the pod's labels, else the defaults.
func (a *attacher) place(ctx context.Context, req cniapi.PodRequest) (Place, error) {
	p := Place{Tenant: req.Tenant, Network: req.Network, Group: req.Group}
	if p.Network == "" && a.cfg.Placer != nil && req.Name != "" {
		found, err := a.cfg.Placer(ctx, req)
		if err != nil {
			return Place{}, err
		}
		p = found
	}
	if p.Tenant == "" {
		p.Tenant = "default"
	}
	if p.Network == "" {
		p.Network = "default-net"
	}
	return p, nil
}

// reserve has the endpoint created and a port prepared, both at the same time when the
// network is known already.
func (a *attacher) reserve(ctx context.Context, req cniapi.PodRequest, place Place) (state.Endpoint, drivers.Port, error) {
	name := endpointName(req.ContainerID, req.IfName)
	id := state.EndpointID(place.NetworkID(), name)
	a.pending.Forget(id)
	attachment := drivers.Attachment{EndpointID: id, ContainerID: req.ContainerID, IfName: req.IfName, Netns: req.Netns}
	if req.Name != "" {
		attachment.Pod = req.Namespace + "/" + req.Name
	}

	var rec state.Endpoint
	var port drivers.Port
	create := func(ctx context.Context) (err error) {
		rec, err = a.cfg.Master.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
			TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name, EPCommonName: req.Name,
			ConfigEP: masterapi.ConfigEP{Container: name, Host: a.cfg.HostLabel, ServiceName: place.Group},
		})
		err = a.missing(err, place)
		if err == nil && rec.HomingHost != a.cfg.HostLabel {
			err = errs.New(errs.Exists, "endpoint %s already exists on host %s", rec.ID, rec.HomingHost)
		}
		return coded(cniapi.CodeEndpoint, msgEndpoint, err)
	}
	attach := func(ctx context.Context, n drivers.Network) (err error) {
		port, err = a.cfg.Ports.Attach(ctx, attachment, n.Encap, n.Tag)
		return coded(cniapi.CodeInterface, msgInterface, err)
	}

	if n, known := a.cfg.Agent.KnownNetwork(place.NetworkID()); known {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() error { return create(gctx) })
		g.Go(func() error { return attach(gctx, n) })
		return rec, port, g.Wait()
	}
	if err := create(ctx); err != nil {
		return rec, port, err
	}
	n, err := a.cfg.Agent.Network(ctx, place.NetworkID())
	if err != nil {
		return rec, port, coded(cniapi.CodeEndpoint, msgEndpoint, err)
	}
	return rec, port, attach(ctx, n)
}

// missing adds to an error what can be done about a network or a group that is not
// there: whoever looks at the pod's events reads it.
func (a *attacher) missing(err error, p Place) error {
	if !errs.Is(err, errs.NotFound) {
		return err
	}
	if _, known := a.cfg.Agent.KnownNetwork(p.NetworkID()); known && p.Group != "" {
		return fmt.Errorf("group %s of tenant %s not found, create it with: netctl group create -t %s %s %s: %w", p.Group, p.Tenant, p.Tenant, p.Network, p.Group, err)
	}
	return fmt.Errorf("network %s of tenant %s not found, create it with: netctl net create -t %s -s SUBNET -g GATEWAY %s: %w", p.Network, p.Tenant, p.Tenant, p.Network, err)
}

// connect configures the container's interface while the flows are on their way.
func (a *attacher) connect(ctx context.Context, req cniapi.PodRequest, rec state.Endpoint, port drivers.Port) (cniapi.PodReply, error) {
	n, err := a.cfg.Agent.Network(ctx, rec.NetID)
	if err != nil {
		return cniapi.PodReply{}, coded(cniapi.CodeEndpoint, msgEndpoint, err)
	}
	ifc, err := containerInterface(req, rec, n, port)
	if err != nil {
		return cniapi.PodReply{}, coded(cniapi.CodeEndpoint, msgEndpoint, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ifc.configure() })
	g.Go(func() error { return coded(cniapi.CodeEndpoint, msgEndpoint, a.realised(gctx, req, rec.ID)) })
	if err := g.Wait(); err != nil {
		return cniapi.PodReply{}, err
	}
	return ifc.reply(rec, port), nil
}

// undo leaves nothing of a failed attachment. The caller's time may be over, so it
// takes its own; what netmaster cannot be told now, it is told later.
func (a *attacher) undo(place Place, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := a.remove(ctx, place, name); err != nil {
		a.cfg.Log.WithError(err).WithField("endpoint", state.EndpointID(place.NetworkID(), name)).Warn("a failed attachment is removed later")
	}
}

// realised waits until the switch forwards for an endpoint, and holds it to what the
// pod's policies say.
func (a *attacher) realised(ctx context.Context, req cniapi.PodRequest, endpoint string) error {
	if a.cfg.Guards != nil && req.Name != "" {
		if err := a.cfg.Guards.Await(ctx, req.Namespace, req.Name, req.PodUID); err != nil {
			return err
		}
	}
	return a.cfg.Ports.Realised(ctx, endpoint)
}

// portsChanged says that a container was attached or detached.
func (a *attacher) portsChanged() {
	a.cfg.Agent.PortsChanged()
	if a.cfg.Guards != nil {
		a.cfg.Guards.PortsChanged()
	}
}

func (a *attacher) remove(ctx context.Context, place Place, name string) error {
	id := state.EndpointID(place.NetworkID(), name)
	if err := a.cfg.Ports.Detach(ctx, id); err != nil {
		return err
	}
	a.portsChanged()
	req := masterapi.DeleteEndpointRequest{TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name}
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := a.cfg.Master.DeleteEndpoint(short, req)
	if err == nil {
		return nil
	}
	a.pending.Add(id, req)
	a.cfg.Log.WithError(err).WithField("endpoint", id).Warn("netmaster cannot be told of a deletion now; retrying in the background")
	return nil
}

// del detaches a container; what is gone already is no error. Neither the namespace
// nor the pod need exist any more.
func (a *attacher) del(ctx context.Context, req cniapi.PodRequest) error {
	if req.ContainerID == "" {
		return &codedError{cniapi.CodeInvalidEnv, msgEndpoint, fmt.Errorf("no container id given")}
	}
	release, err := a.turns.Lock(ctx, req.ContainerID+"/"+req.IfName)
	if err != nil {
		return coded(cniapi.CodeTryLater, msgEndpoint, err)
	}
	defer release()
	for id, place := range a.existing(req.ContainerID, req.IfName) {
		if err := a.remove(ctx, place.Place, place.name); err != nil {
			return coded(cniapi.CodeInterface, msgEndpoint, err)
		}
		a.cfg.Log.WithField("endpoint", id).Info("container detached")
	}
	return nil
}

type placedName struct {
	Place
	name string
}

// existing finds what there is of an attachment: ports labelled with it, and endpoint
// records of this host.
func (a *attacher) existing(containerID, ifName string) map[string]placedName {
	name := endpointName(containerID, ifName)
	out := map[string]placedName{}
	for _, rec := range a.cfg.Agent.LocalEndpoints() {
		if rec.EndpointID == name {
			if p, ok := a.placeOf(rec.NetID); ok {
				out[rec.ID] = placedName{p, name}
			}
		}
	}
	for _, at := range a.cfg.Ports.Attachments() {
		if at.ContainerID != containerID || at.IfName != ifName {
			continue
		}
		if _, listed := out[at.EndpointID]; listed {
			continue
		}
		netID, ok := strings.CutSuffix(at.EndpointID, "-"+name)
		if !ok {
			continue
		}
		p, known := a.placeOf(netID)
		if !known {
			// The network is gone, or not read yet: its parts are only in its id.
			p = splitNetworkID(netID)
		}
		out[at.EndpointID] = placedName{p, name}
	}
	return out
}

func (a *attacher) placeOf(netID string) (Place, bool) {
	n, ok := a.cfg.Agent.KnownNetwork(netID)
	return Place{Tenant: n.Tenant, Network: n.Name}, ok
}

// splitNetworkID takes <network>.<tenant> apart at the last dot; used only when the
// network's record, which has the parts, is gone.
func splitNetworkID(id string) Place {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return Place{Network: id, Tenant: "default"}
	}
	return Place{Network: id[:i], Tenant: id[i+1:]}
}
