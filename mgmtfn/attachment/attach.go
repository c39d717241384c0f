package attachment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Agent is what the attacher asks of the agent.
type Agent interface {
	endpoint.Agent
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
	// Network is where the container belongs. Without a network's name the pod's labels say
	// it, if it is for a pod; what is still empty then is the default tenant's default
	// network, and no group.
	Network    state.NetworkRef
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
	Master    endpoint.Master
	Agent     Agent
	Ports     Ports
	// NetworkOf finds the network of a pod; nil when there is nobody to ask.
	NetworkOf func(context.Context, Pod) (state.NetworkRef, error)
	// Pods lists the UIDs of all pods that are to run on this host; nil when there is
	// nobody to ask.
	Pods func(context.Context) (map[string]bool, error)
	// EndpointPolicies holds pods to network policies; nil when nobody does.
	EndpointPolicies EndpointPolicies
	// Notes is the directory where plugins leave notes of deletions; empty for none.
	Notes string
	// Patience is how long a deletion waits for a store or a switch that is unavailable.
	Patience time.Duration
	Log      logrus.FieldLogger
}

// EndpointPolicies holds pods to network policies.
type EndpointPolicies interface {
	// Await waits until a pod that has a port is declared to be subject to its policies.
	// It has a time limit of its own.
	Await(ctx context.Context, namespace, name, uid string) error
	// PortsChanged says that a pod was attached or detached.
	PortsChanged()
}

// Attacher attaches and detaches. Calls about one attachment are served one at a time.
type Attacher struct {
	cfg       Config
	endpoints *endpoint.Manager
	orphans   *endpoint.Collector
}

// New makes an attacher. What it cannot do at once it does in Run.
func New(cfg Config) *Attacher {
	a := &Attacher{cfg: cfg}
	a.endpoints = endpoint.New(endpoint.Config{
		HostLabel: cfg.HostLabel, Master: cfg.Master, Agent: cfg.Agent, Ports: cfg.Ports, PortsChanged: a.portsChanged, Log: cfg.Log,
	})
	a.orphans = endpoint.NewCollector(a.endpoints)
	return a
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
	if err := ns.IsNSorErr(req.Netns); err != nil {
		return cni.Attached{}, failed(StepNetns, fmt.Errorf("network namespace %s: %w", req.Netns, err))
	}
	name := endpoint.Name(req.ContainerID, req.IfName)
	release, err := a.endpoints.Lock(ctx, name)
	if err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}
	defer release()
	// An earlier deletion is over: this is wanted again.
	if _, err := a.dropNote(req.ContainerID, req.IfName); err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}

	ref, err := a.network(ctx, req)
	if err != nil {
		return cni.Attached{}, failed(StepNetwork, err)
	}
	for id, old := range a.existing(req.ContainerID, req.IfName) {
		if id == state.EndpointID(ref.NetworkID(), name) {
			continue
		}
		if err := a.endpoints.Remove(ctx, old); err != nil {
			return cni.Attached{}, failed(StepDetach, err)
		}
	}
	created, err := a.create(ctx, req, ref)
	if err != nil {
		return cni.Attached{}, err
	}
	res, err := a.connect(ctx, req, created)
	if err != nil {
		a.endpoints.Undo(ctx, ref, name)
		return cni.Attached{}, err
	}
	a.cfg.Log.WithFields(logrus.Fields{"endpoint": created.Record.ID, "ip": res.IPv4, "port": created.Port.OVSName}).Info("container attached")
	return res, nil
}

// network finds the container's tenant, network and group: what the request says, else
// the pod's labels, else the defaults.
func (a *Attacher) network(ctx context.Context, req Request) (state.NetworkRef, error) {
	ref := req.Network
	if ref.Network == "" && a.cfg.NetworkOf != nil && req.Pod != (Pod{}) {
		found, err := a.cfg.NetworkOf(ctx, req.Pod)
		if err != nil {
			return state.NetworkRef{}, err
		}
		ref = found
	}
	return placement.WithDefaults(ref), nil
}

// create has the endpoint created for a container's interface.
func (a *Attacher) create(ctx context.Context, req Request, ref state.NetworkRef) (endpoint.Created, error) {
	spec := endpoint.Spec{
		Network: ref, Name: endpoint.Name(req.ContainerID, req.IfName), CommonName: req.CommonName, MAC: req.MAC,
		Port: drivers.Attachment{ContainerID: req.ContainerID, IfName: req.IfName, Netns: req.Netns, Config: req.Config},
	}
	if req.Pod != (Pod{}) {
		spec.Port.Pod, spec.Port.PodUID = req.Pod.Namespace+"/"+req.Pod.Name, req.Pod.UID
	}
	if err := askFor(&spec, req.Addresses); err != nil {
		return endpoint.Created{}, failed(StepRequest, err)
	}
	created, err := a.endpoints.Create(ctx, spec)
	var failure *endpoint.CreateError
	switch {
	case !errors.As(err, &failure):
		return created, failed(StepEndpoint, err)
	case failure.Part == endpoint.PortPart:
		return created, failed(StepInterface, failure.Err)
	case failure.Part == endpoint.RecordPart:
		return created, failed(StepEndpoint, a.missing(failure.Err, ref))
	}
	return created, failed(StepEndpoint, failure.Err)
}

// missing adds to an error what can be done about a network or a group that is not
// there: whoever looks at the events of a pod reads it.
func (a *Attacher) missing(err error, p state.NetworkRef) error {
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
func (a *Attacher) connect(ctx context.Context, req Request, created endpoint.Created) (cni.Attached, error) {
	rec, port := created.Record, created.Port
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

// realised waits until the switch forwards for an endpoint, under the policies of its pod.
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
