package attachment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/deletions"
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
	drivers.Ports
	Serving() error
}

// Pod names a Kubernetes pod; the zero value stands for none.
type Pod struct{ Namespace, Name, UID string }

// Request describes an attachment that is wanted.
type Request struct {
	ContainerID string
	IfName      string // inside the container
	Netns       string // path of the network namespace
	// Place is where the container belongs. Without a network the pod's labels say it,
	// if it is for a pod; what is still empty then is the default tenant's default
	// network, and no group.
	Place      Place
	Pod        Pod
	CommonName string // the container's name in DNS; may be empty
	Config     string // name of the CNI network configuration; empty without one
	// Addresses that are wanted, at most one a family, with or without a prefix length, and
	// the interface's; what is not said netmaster chooses.
	Addresses []string
	MAC       string
	MTU       int // 0: what the network carries
}

// Config says what an attacher works with.
type Config struct {
	HostLabel string
	Master    Master
	Agent     Agent
	Ports     Ports
	// Placer finds a pod's place; nil when there is nobody to ask.
	Placer func(context.Context, Pod) (Place, error)
	// Pods lists the UIDs of all pods that are to run on this host; nil when there is
	// nobody to ask.
	Pods func(context.Context) (map[string]bool, error)
	// EndpointPolicies holds pods to network policies; nil when nobody does.
	EndpointPolicies EndpointPolicies
	// Notes is the directory where plugins leave notes of deletions; empty for none.
	Notes string
	// Patience is how long a deletion waits for a store or a switch that is away.
	Patience time.Duration
	Log      logrus.FieldLogger
}

// EndpointPolicies holds pods to network policies.
type EndpointPolicies interface {
	// Await waits until a pod that has a port is declared to be held to its policies.
	// It has a time limit of its own.
	Await(ctx context.Context, namespace, name, uid string) error
	// PortsChanged says that a pod was attached or detached.
	PortsChanged()
}

// Attacher attaches and detaches. Calls about one attachment are served one at a time.
type Attacher struct {
	cfg     Config
	turns   keylock.Locks
	pending *deletions.Queue
}

// New makes an attacher. What it cannot do at once it does in Run.
func New(cfg Config) *Attacher {
	return &Attacher{cfg: cfg, pending: deletions.New(cfg.Master, cfg.Log)}
}

// Name is the endpoint's id inside its network: the container's for the first
// interface, with the interface's name for further ones.
func Name(containerID, ifName string) string {
	if ifName == "" || ifName == "eth0" {
		return containerID
	}
	return containerID + "-" + ifName
}

// Add attaches a container; repeated for the same attachment it returns the same. One
// that belongs somewhere else than before leaves there first.
func (a *Attacher) Add(ctx context.Context, req Request) (cni.Attached, error) {
	if req.ContainerID == "" || req.Netns == "" || req.IfName == "" {
		return cni.Attached{}, failed(StepRequest, fmt.Errorf("container id %q, network namespace %q and interface name %q must all be given", req.ContainerID, req.Netns, req.IfName))
	}
	if err := utils.ValidateContainerID(req.ContainerID); err != nil {
		return cni.Attached{}, failed(StepRequest, fmt.Errorf("container id %q: %s", req.ContainerID, err.Msg))
	}
	name := Name(req.ContainerID, req.IfName)
	if err := ns.IsNSorErr(req.Netns); err != nil {
		return cni.Attached{}, failed(StepNetns, fmt.Errorf("network namespace %s: %w", req.Netns, err))
	}
	release, err := a.turns.Lock(ctx, name)
	if err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}
	defer release()
	// An earlier deletion is over: this is wanted again.
	if _, err := a.dropNote(req.ContainerID, req.IfName); err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}

	place, err := a.place(ctx, req)
	if err != nil {
		return cni.Attached{}, failed(StepPlace, err)
	}
	for id, old := range a.existing(req.ContainerID, req.IfName) {
		if id == state.EndpointID(place.NetworkID(), name) {
			continue
		}
		if err := a.remove(ctx, old.Place, old.name); err != nil {
			return cni.Attached{}, failed(StepDetach, err)
		}
	}
	rec, port, err := a.reserve(ctx, req, place)
	if err == nil {
		var res cni.Attached
		if res, err = a.connect(ctx, req, rec, port); err == nil {
			a.portsChanged()
			a.cfg.Log.WithFields(logrus.Fields{"endpoint": rec.ID, "ip": res.IPv4, "port": port.OVSName}).Info("container attached")
			return res, nil
		}
	}
	a.undo(ctx, place, name)
	return cni.Attached{}, err
}

// place finds the container's tenant, network and group: what the request says, else
// the pod's labels, else the defaults.
func (a *Attacher) place(ctx context.Context, req Request) (Place, error) {
	p := req.Place
	if p.Network == "" && a.cfg.Placer != nil && req.Pod != (Pod{}) {
		found, err := a.cfg.Placer(ctx, req.Pod)
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
func (a *Attacher) reserve(ctx context.Context, req Request, place Place) (state.Endpoint, drivers.Port, error) {
	name := Name(req.ContainerID, req.IfName)
	id := state.EndpointID(place.NetworkID(), name)
	a.pending.Forget(id)
	attachment := drivers.Attachment{EndpointID: id, ContainerID: req.ContainerID, IfName: req.IfName, Netns: req.Netns, Config: req.Config}
	if req.Pod != (Pod{}) {
		attachment.Pod, attachment.PodUID = req.Pod.Namespace+"/"+req.Pod.Name, req.Pod.UID
	}

	var rec state.Endpoint
	var port drivers.Port
	config := masterapi.ConfigEP{Container: name, Host: a.cfg.HostLabel, ServiceName: place.Group, MacAddress: req.MAC}
	if err := wish(&config, req.Addresses); err != nil {
		return state.Endpoint{}, drivers.Port{}, failed(StepRequest, err)
	}
	create := func(ctx context.Context) (err error) {
		rec, err = a.cfg.Master.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
			TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name, EPCommonName: req.CommonName,
			ConfigEP: config,
		})
		err = a.missing(err, place)
		if err == nil && rec.HomingHost != a.cfg.HostLabel {
			err = errs.New(errs.Exists, "endpoint %s already exists on host %s", rec.ID, rec.HomingHost)
		}
		return failed(StepEndpoint, err)
	}
	attach := func(ctx context.Context, n drivers.Network) (err error) {
		port, err = a.cfg.Ports.Attach(ctx, attachment, n.Encap, n.Tag)
		return failed(StepInterface, err)
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
		return rec, port, failed(StepEndpoint, err)
	}
	return rec, port, attach(ctx, n)
}

// missing adds to an error what can be done about a network or a group that is not
// there: whoever looks at the events of a pod reads it.
func (a *Attacher) missing(err error, p Place) error {
	if !errs.Is(err, errs.NotFound) {
		return err
	}
	if _, known := a.cfg.Agent.KnownNetwork(p.NetworkID()); known && p.Group != "" {
		return fmt.Errorf("group %s of tenant %s not found, create it with: netctl group create -t %s %s %s: %w", p.Group, p.Tenant, p.Tenant, p.Network, p.Group, err)
	}
	if strings.Contains(err.Error(), masterapi.NoTenant(p.Tenant)) {
		return fmt.Errorf("tenant %s not found, create it with: netctl tenant create %s, then its network with: netctl net create -t %s -s SUBNET -g GATEWAY %s: %w", p.Tenant, p.Tenant, p.Tenant, p.Network, err)
	}
	return fmt.Errorf("network %s of tenant %s not found, create it with: netctl net create -t %s -s SUBNET -g GATEWAY %s: %w", p.Network, p.Tenant, p.Tenant, p.Network, err)
}

// connect configures the container's interface while the flows are on their way.
func (a *Attacher) connect(ctx context.Context, req Request, rec state.Endpoint, port drivers.Port) (cni.Attached, error) {
	n, err := a.cfg.Agent.Network(ctx, rec.NetID)
	if err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}
	ifc, err := containerInterface(req, rec, n, port)
	if err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ifc.configure() })
	g.Go(func() error { return failed(StepEndpoint, a.realised(gctx, req, rec.ID)) })
	if err := g.Wait(); err != nil {
		return cni.Attached{}, err
	}
	return ifc.result(rec, port), nil
}

// realised waits until the switch forwards for an endpoint, and holds it to what the
// pod's policies say.
func (a *Attacher) realised(ctx context.Context, req Request, endpoint string) error {
	if a.cfg.EndpointPolicies != nil && req.Pod != (Pod{}) {
		if err := a.cfg.EndpointPolicies.Await(ctx, req.Pod.Namespace, req.Pod.Name, req.Pod.UID); err != nil {
			return err
		}
	}
	return a.cfg.Ports.Realised(ctx, endpoint)
}

// portsChanged says that a container was attached or detached.
func (a *Attacher) portsChanged() {
	a.cfg.Agent.PortsChanged()
	if a.cfg.EndpointPolicies != nil {
		a.cfg.EndpointPolicies.PortsChanged()
	}
}
