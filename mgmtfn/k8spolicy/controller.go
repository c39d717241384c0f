package k8spolicy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Driver receives endpoint policies.
type Driver interface {
	drivers.Driver
	Attachments() []drivers.Attachment
}

// Config configures a Controller.
type Config struct {
	// Lists of the API server, of all namespaces.
	Pods, Namespaces, NetworkPolicies cache.ListerWatcher
	Driver                            Driver
	Host                              string // its label
	// Patience is how long a pod waits for the API server's lists; 5 s when 0.
	Patience time.Duration
	// StartWithout lets a pod start without any policy if the lists are not there by
	// then. Otherwise the runtime has to retry.
	StartWithout bool
	Log          logrus.FieldLogger
}

// Controller applies the policies of the cluster to the pods of this host. Create it with
// New.
type Controller struct {
	cfg  Config
	kick chan struct{}

	mu      sync.Mutex
	cluster *ClusterState
	synced  bool          // all lists have been read
	seen    uint64        // changes
	done    uint64        // of these, the ones that have been declared
	changed signal.Signal // broadcast with done, and with synced

	declared Result // used by Run only
}

// New makes a controller; it does nothing before Run.
func New(cfg Config) *Controller {
	if cfg.Patience == 0 {
		cfg.Patience = 5 * time.Second
	}
	return &Controller{
		cfg: cfg, kick: make(chan struct{}, 1), cluster: NewClusterState(),
	}
}

// Run runs until ctx ends; the endpoint policies stay. The API server may be unreachable,
// also at the start: then Run waits for it, and earlier policies stay.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var synced []cache.InformerSynced
	for _, list := range []struct {
		from cache.ListerWatcher
		kind runtime.Object
	}{
		{c.cfg.Namespaces, &corev1.Namespace{}},
		{c.cfg.Pods, &corev1.Pod{}},
		{c.cfg.NetworkPolicies, &networkingv1.NetworkPolicy{}},
	} {
		informer := cache.NewSharedInformer(list.from, list.kind, 0)
		if err := informer.SetTransform(slim); err != nil {
			return fmt.Errorf("informer: %w", err)
		}
		handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.set, UpdateFunc: func(_, now any) { c.set(now) }, DeleteFunc: c.remove,
		})
		if err != nil {
			return fmt.Errorf("informer: %w", err)
		}
		synced = append(synced, handled.HasSynced)
		g.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	g.Go(func() error {
		if !cache.WaitForCacheSync(ctx.Done(), synced...) {
			return nil
		}
		c.mu.Lock()
		c.synced = true
		c.mu.Unlock()
		c.declare()
		c.cfg.Driver.Synced(drivers.SourcePolicies)
		c.cfg.Log.WithFields(logrus.Fields{"pods": len(c.declared.EndpointPolicies), "sets": len(c.declared.Sets)}).Info("network policies synced")
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-c.kick:
				c.declare()
			}
		}
	})
	return g.Wait()
}

// slim drops unused fields, which are the greater part of an object.
func slim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Pod:
		small := &corev1.Pod{}
		small.Namespace, small.Name, small.UID, small.ResourceVersion = o.Namespace, o.Name, o.UID, o.ResourceVersion
		small.Labels = o.Labels
		for _, key := range []string{placement.LabelTenant, corev1.MirrorPodAnnotationKey} {
			if v, ok := o.Annotations[key]; ok {
				metav1.SetMetaDataAnnotation(&small.ObjectMeta, key, v)
			}
		}
		small.Spec.HostNetwork = o.Spec.HostNetwork
		ports := func(all []corev1.Container) (out []corev1.Container) {
			for _, c := range all {
				out = append(out, corev1.Container{Ports: c.Ports, RestartPolicy: c.RestartPolicy})
			}
			return out
		}
		small.Spec.Containers, small.Spec.InitContainers = ports(o.Spec.Containers), ports(o.Spec.InitContainers)
		small.Status.Phase, small.Status.PodIPs = o.Status.Phase, o.Status.PodIPs
		return small, nil
	case *corev1.Namespace:
		o.ManagedFields = nil
	case *networkingv1.NetworkPolicy:
		o.ManagedFields, o.Annotations = nil, nil
	}
	return o, nil
}

// set handles an object that was added or has changed.
func (c *Controller) set(o any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		p := ParsePod(o)
		if old, ok := c.cluster.Pod(p.Key); ok && old.equal(p) {
			return // usually: its status has changed in ways that do not matter here
		}
		c.cluster.SetPod(p)
	case *corev1.Namespace:
		c.cluster.SetNamespace(ParseNamespace(o))
	case *networkingv1.NetworkPolicy:
		p, err := ParsePolicy(o)
		if err != nil {
			c.cfg.Log.WithError(err).Error("a network policy has a part that cannot be enforced; enforcing the rest")
		}
		c.cluster.SetPolicy(p)
	default:
		return
	}
	c.touch()
}

func (c *Controller) remove(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		c.cluster.RemovePod(Key{o.Namespace, o.Name})
	case *corev1.Namespace:
		c.cluster.RemoveNamespace(o.Name)
	case *networkingv1.NetworkPolicy:
		c.cluster.RemovePolicy(Key{o.Namespace, o.Name})
	default:
		return
	}
	c.touch()
}

// touch has everything declared again. The caller holds mu.
func (c *Controller) touch() {
	c.seen++
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// PortsChanged says that a pod of this host was attached or detached.
func (c *Controller) PortsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touch()
}

// declare compiles the cluster state and declares the result to the driver.
func (c *Controller) declare() {
	c.mu.Lock()
	seen := c.seen
	c.mu.Unlock()
	pods := map[string]Key{} // read after seen, so that a pod attached before is included
	for _, at := range c.cfg.Driver.Attachments() {
		if namespace, name, ok := strings.Cut(at.Pod, "/"); ok {
			pods[at.EndpointID] = Key{namespace, name}
		}
	}
	c.mu.Lock()
	now := c.cluster.Compile(pods)
	coarser := c.cluster.Coarser()
	c.mu.Unlock()
	now.Declare(c.cfg.Driver, c.declared)
	c.declared = now
	c.mu.Lock()
	c.done = seen
	if coarser {
		c.touch()
	}
	c.changed.Broadcast()
	c.mu.Unlock()
}

// Await waits until the policies of an attached pod are declared. Unavailable: the pod is
// not in the API server's list yet, or there is no list, unless the configuration allows to
// start without; Ready reports this, too.
func (c *Controller) Await(ctx context.Context, namespace, name, uid string) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	key := Key{namespace, name}
	c.PortsChanged()
	covers := uint64(0) // the change after which both the port and the pod are known
	for {
		c.mu.Lock()
		p, known := c.cluster.Pod(key)
		known = known && (uid == "" || p.UID == uid)
		if known && covers == 0 {
			covers = c.seen
		}
		synced, declared, changed := c.synced, c.done >= covers, c.changed.Next()
		c.mu.Unlock()
		if known && synced && declared {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			switch {
			case !synced && !c.cfg.StartWithout:
				return errs.New(errs.Unavailable, "pod %s: the API server's lists of pods, namespaces and networkpolicies are not known to the agent yet; the pod waits for them", key)
			case !synced:
				c.cfg.Log.WithField("pod", key).Warn("the API server's lists are not known; the pod starts without network policies until they are")
				return nil
			}
			return errs.New(errs.Unavailable, "pod %s: its network policies are not known yet: the API server's list has no such pod with UID %q", key, uid)
		}
	}
}

// Ready returns nil when policies are enforced, or why they are not.
func (c *Controller) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		if !c.cfg.StartWithout {
			return errs.New(errs.Unavailable, "new pods have to wait: waiting for the API server's lists of pods, namespaces and networkpolicies")
		}
		return errs.New(errs.Unavailable, "network policies are not enforced for new pods: waiting for the API server's lists of pods, namespaces and networkpolicies")
	}
	return nil
}
