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
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Agent is what the attacher needs from the agent.
type Agent interface {
	endpoint.Agent
	PortsChanged()
	Ready() error
}

// Ports is what it needs from the driver.
type Ports interface {
	drivers.Ports
	Serving() error
}

// Pod names a Kubernetes pod; zero: not a pod.
type Pod struct{ Namespace, Name, UID string }

// Request describes a requested attachment.
type Request struct {
	ContainerID string
	IfName      string // inside the container
	Netns       string // path of the network namespace
	// Network is the container's network. Without a network's name the pod's labels name
	// it, if the container is part of a pod; what is still empty then is the default
	// tenant's default network, and no group.
	Network    state.NetworkRef
	Pod        Pod
	CommonName string // the container's name in DNS; may be empty
	Config     string // name of the CNI network configuration; empty without one
	// The requested addresses, at most one per family, with or without a prefix length,
	// and the interface's MAC; netmaster chooses what is empty.
	Addresses []string
	MAC       string
	MTU       int // 0: that of the network
}

// Config configures an attacher.
type Config struct {
	HostLabel string
	Master    endpoint.Master
	Agent     Agent
	Ports     Ports
	// PodNetworks finds the networks of pods; nil if there is no API server.
	PodNetworks PodNetworks
	// Pods lists the UIDs of all pods that should run on this host; nil if there is no
	// API server.
	Pods func(context.Context) (map[string]bool, error)
	// EndpointPolicies enforces network policies; nil if nothing does.
	EndpointPolicies EndpointPolicies
	// Notes is the directory in which plugins leave notes of deletions; empty for none.
	Notes string
	// Patience is how long a deletion waits for a store or a switch that is unavailable.
	Patience time.Duration
	Log      logrus.FieldLogger
}

// PodNetworks finds the networks of pods.
type PodNetworks interface {
	// Network asks which network a pod belongs to.
	Network(context.Context, Pod) (state.NetworkRef, error)
	// Likely is what Network will probably return; false: nothing is known.
	Likely(Pod) (state.NetworkRef, bool)
}

// EndpointPolicies enforces network policies for pods.
type EndpointPolicies interface {
	// Await waits until the policies of a pod that has a port are declared. It has a
	// time limit of its own.
	Await(ctx context.Context, namespace, name, uid string) error
	// PortsChanged is called when a pod was attached or detached.
	PortsChanged()
}

// Attacher attaches and detaches. Calls for the same attachment run one at a time.
type Attacher struct {
	cfg       Config
	endpoints *endpoint.Manager
	orphans   *endpoint.Collector
}

// New creates an attacher. Run does what cannot be done immediately.
func New(cfg Config) *Attacher {
	a := &Attacher{cfg: cfg}
	a.endpoints = endpoint.New(endpoint.Config{
		HostLabel: cfg.HostLabel, Master: cfg.Master, Agent: cfg.Agent, Ports: cfg.Ports, PortsChanged: a.portsChanged, Log: cfg.Log,
	})
	a.orphans = endpoint.NewCollector(a.endpoints)
	return a
}

// Add attaches a container; repeated for the same attachment it returns the same result. An
// attachment that was in another network is detached from that first.
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
	// A new attachment cancels an earlier deletion.
	if _, err := a.dropNote(req.ContainerID, req.IfName); err != nil {
		return cni.Attached{}, failed(StepEndpoint, err)
	}

	if likely, ok := a.likely(req); ok {
		return a.addWhileAsking(ctx, req, likely)
	}
	ref, err := a.network(ctx, req)
	if err != nil {
		return cni.Attached{}, failed(StepNetwork, err)
	}
	return a.addTo(ctx, req, ref)
}

// addTo attaches a container to a network.
func (a *Attacher) addTo(ctx context.Context, req Request, ref state.NetworkRef) (cni.Attached, error) {
	name := endpoint.Name(req.ContainerID, req.IfName)
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

// create creates the endpoint for a container's interface.
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

// missing adds to an error how to create a missing network or group, for whoever reads the
// events of the pod.
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

// connect configures the container's interface while the flows are being installed.
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

// portsChanged notifies the others that a container was attached or detached.
func (a *Attacher) portsChanged() {
	a.cfg.Agent.PortsChanged()
	if a.cfg.EndpointPolicies != nil {
		a.cfg.EndpointPolicies.PortsChanged()
	}
}
