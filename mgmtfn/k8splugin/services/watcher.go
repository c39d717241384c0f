package services

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
)

// Config configures a Watcher.
type Config struct {
	HostLabel string // of endpoints of this host
	NodeName  string // of this host's Node
	// Lists of the API server.
	Services, EndpointSlices, Nodes cache.ListerWatcher
	Driver                          drivers.Driver
	Node                            NodeProxy // nil: another program load-balances Services on the node
	Log                             logrus.FieldLogger
}

// Watcher declares Services. Create it with New.
type Watcher struct {
	cfg                     Config
	services, slices, nodes cache.SharedIndexInformer
	kick                    chan struct{}
	known                   chan struct{} // closed when the state of Contiv is

	mu     sync.Mutex
	owners *owners
	// What may have to be declared again.
	stale struct {
		all   bool
		keys  map[string]struct{} // <namespace>/<name>
		addrs map[netip.Addr]struct{}
	}
	declared map[string]struct{} // ids; used by Run only
}

const (
	byService = "service"
	byAddress = "address"
)

// New makes a watcher; it does nothing before Run.
func New(cfg Config) (*Watcher, error) {
	w := &Watcher{cfg: cfg, kick: make(chan struct{}, 1), known: make(chan struct{}), owners: newOwners(), declared: map[string]struct{}{}}
	w.stale.keys, w.stale.addrs = map[string]struct{}{}, map[netip.Addr]struct{}{}
	w.services = cache.NewSharedIndexInformer(cfg.Services, &corev1.Service{}, 0, nil)
	w.slices = cache.NewSharedIndexInformer(cfg.EndpointSlices, &discoveryv1.EndpointSlice{}, 0, cache.Indexers{
		byService: indexed(func(s *discoveryv1.EndpointSlice) []string { return []string{serviceOf(s)} }),
		byAddress: indexed(addressesOf),
	})
	w.nodes = cache.NewSharedIndexInformer(cfg.Nodes, &corev1.Node{}, 0, nil)
	for informer, mark := range map[cache.SharedIndexInformer]func(runtime.Object){
		w.services: func(o runtime.Object) {
			if s, ok := o.(*corev1.Service); ok {
				w.stale.keys[s.Namespace+"/"+s.Name] = struct{}{}
			}
		},
		w.slices: func(o runtime.Object) {
			if s, ok := o.(*discoveryv1.EndpointSlice); ok {
				w.stale.keys[serviceOf(s)] = struct{}{}
			}
		},
		w.nodes: func(runtime.Object) { w.stale.all = true },
	} {
		if err := w.listen(informer, mark); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// listen has every object that is added, changed or removed marked.
func (w *Watcher) listen(informer cache.SharedIndexInformer, mark func(runtime.Object)) error {
	if err := informer.SetTransform(slim); err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.cfg.Log.WithError(err).Warn("cannot watch the API server; retrying")
	}); err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	note := func(all ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, o := range all {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if o, ok := o.(runtime.Object); ok {
				mark(o)
			}
		}
		w.wake()
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note(o) },
		DeleteFunc: func(o any) { note(o) },
		UpdateFunc: func(before, now any) {
			// A Node changes every few seconds in ways that do not matter here.
			if a, ok := before.(*corev1.Node); ok {
				if b, ok := now.(*corev1.Node); ok && zoneOf(a) == zoneOf(b) && slices.Equal(a.Status.Addresses, b.Status.Addresses) {
					return
				}
			}
			note(before, now) // a slice may have belonged to another Service
		},
	})
	if err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	return nil
}

// slim drops unused fields, which are the greater part of an object.
func slim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		o.ManagedFields, o.Annotations, o.Spec = nil, nil, corev1.NodeSpec{}
		o.Status = corev1.NodeStatus{Addresses: o.Status.Addresses}
	case *corev1.Service:
		o.ManagedFields, o.Annotations = nil, nil
	case *discoveryv1.EndpointSlice:
		o.ManagedFields, o.Annotations = nil, nil
	}
	return o, nil
}

func indexed(f func(*discoveryv1.EndpointSlice) []string) cache.IndexFunc {
	return func(o any) ([]string, error) {
		s, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			return nil, fmt.Errorf("%T is no EndpointSlice", o)
		}
		return f(s), nil
	}
}

// serviceOf is the key of the Service that a slice belongs to.
func serviceOf(s *discoveryv1.EndpointSlice) string {
	return s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
}

func addressesOf(s *discoveryv1.EndpointSlice) []string {
	var out []string
	for _, ep := range s.Endpoints {
		for _, text := range ep.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				out = append(out, a.String())
			}
		}
	}
	return out
}

// zoneOf is the failure zone of a Node.
func zoneOf(n *corev1.Node) string { return n.Labels[corev1.LabelTopologyZone] }

// Apply applies a batch of the state prefix; batches must come in order.
func (w *Watcher) Apply(batch objdb.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := w.owners.apply(batch)
	if batch.Snapshot {
		select {
		case <-w.known:
		default:
			close(w.known)
		}
	}
	maps.Copy(w.stale.addrs, changed)
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Run runs until ctx ends. Declarations stay. The API server may be unreachable, also at
// the start: then earlier services stay unchanged. They also stay until Apply has delivered
// the owners of the pods' addresses.
func (w *Watcher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	informers := []cache.SharedIndexInformer{w.services, w.slices, w.nodes}
	synced := make([]cache.InformerSynced, len(informers))
	for i, informer := range informers {
		synced[i] = informer.HasSynced
		g.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	g.Go(func() error {
		if !cache.WaitForCacheSync(ctx.Done(), synced...) {
			return nil
		}
		select {
		case <-w.known:
		case <-ctx.Done():
			return nil
		}
		w.declareAll()
		w.cfg.Driver.Synced(drivers.SourceServices)
		if w.cfg.Node != nil {
			w.cfg.Node.Release()
		}
		w.cfg.Log.WithField("services", len(w.services.GetStore().ListKeys())).Info("Kubernetes Services synced")
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-w.kick:
				w.declareStale()
			}
		}
	})
	return g.Wait()
}

// declareAll declares every existing Service, and deletes others.
func (w *Watcher) declareAll() {
	keys := map[string]struct{}{}
	for _, key := range w.services.GetStore().ListKeys() {
		keys[key] = struct{}{}
	}
	for id := range w.declared {
		keys[strings.TrimSuffix(id, externalSuffix)] = struct{}{}
	}
	w.declare(keys)
}

// declareStale declares what a change may affect.
func (w *Watcher) declareStale() {
	w.mu.Lock()
	all, keys, addrs := w.stale.all, w.stale.keys, w.stale.addrs
	w.stale.all, w.stale.keys, w.stale.addrs = false, map[string]struct{}{}, map[netip.Addr]struct{}{}
	w.mu.Unlock()
	if all {
		w.declareAll()
		return
	}
	for a := range addrs {
		found, err := w.slices.GetIndexer().ByIndex(byAddress, a.String())
		if err != nil {
			w.cfg.Log.WithError(err).Error("the index of slices by address is missing")
			continue
		}
		for _, o := range found {
			if s, ok := o.(*discoveryv1.EndpointSlice); ok {
				keys[serviceOf(s)] = struct{}{}
			}
		}
	}
	w.declare(keys)
}

func (w *Watcher) declare(keys map[string]struct{}) {
	if len(keys) == 0 {
		return
	}
	env := w.surroundings()
	for key := range keys {
		wanted := w.translate(key, env)
		w.declareNode(key, env)
		for _, s := range wanted {
			w.declared[s.ID] = struct{}{}
			w.cfg.Driver.Apply(s)
		}
		for _, id := range ids(key) {
			if slices.ContainsFunc(wanted, func(s drivers.Service) bool { return s.ID == id }) {
				continue
			}
			if _, was := w.declared[id]; was {
				delete(w.declared, id)
				w.cfg.Driver.Delete(drivers.KindService, id)
			}
		}
	}
}

// declareNode is declare for the node's own proxy.
func (w *Watcher) declareNode(key string, env surroundings) {
	if w.cfg.Node == nil {
		return
	}
	if s, all := w.find(key); s != nil {
		w.mu.Lock() // env contains the owners
		wanted, ok := onNode(s, all, env)
		w.mu.Unlock()
		if ok {
			w.cfg.Node.Set(wanted)
			return
		}
	}
	w.cfg.Node.Remove(key)
}

func (w *Watcher) translate(key string, env surroundings) []drivers.Service {
	s, all := w.find(key)
	if s == nil {
		return nil
	}
	w.mu.Lock() // env contains the owners
	defer w.mu.Unlock()
	return translate(s, all, env)
}

// find returns a Service and its slices; nil if it does not exist.
func (w *Watcher) find(key string) (*corev1.Service, []*discoveryv1.EndpointSlice) {
	o, exists, err := w.services.GetStore().GetByKey(key)
	s, ok := o.(*corev1.Service)
	if err != nil || !exists || !ok {
		return nil, nil
	}
	found, err := w.slices.GetIndexer().ByIndex(byService, key)
	if err != nil {
		w.cfg.Log.WithError(err).Error("the index of slices by service is missing")
		return nil, nil
	}
	var all []*discoveryv1.EndpointSlice
	for _, o := range found {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			all = append(all, s)
		}
	}
	return s, all
}

// surroundings reads the Nodes.
func (w *Watcher) surroundings() surroundings {
	env := surroundings{host: w.cfg.HostLabel, node: w.cfg.NodeName, nodes: map[netip.Addr]string{}, owners: w.owners}
	for _, o := range w.nodes.GetStore().List() {
		n, ok := o.(*corev1.Node)
		if !ok {
			continue
		}
		if n.Name == w.cfg.NodeName {
			env.zone = zoneOf(n)
		}
		for _, a := range n.Status.Addresses {
			if a, err := netip.ParseAddr(a.Address); err == nil { // others are names
				env.nodes[a] = n.Name
			}
		}
	}
	return env
}
