package kubeapi

import (
	"context"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Nodes knows the names of the cluster's Nodes. Create it with NewNodes.
type Nodes struct {
	get      func(ctx context.Context, name string) error // asks the API server
	informer cache.SharedIndexInformer
	log      logrus.FieldLogger

	mu      sync.Mutex
	changed signal.Signal
}

// NewNodes makes Nodes that know of the one that is named, or of all if none is. They
// know nothing before Run.
func NewNodes(cfg *rest.Config, only string, log logrus.FieldLogger) (*Nodes, error) {
	all, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errs.New(errs.Invalid, "client of the API server: %w", err)
	}
	client := all.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	selector := fields.Everything()
	if only != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, only)
	}
	return nodesOf(SelectMetadata(client, selector), func(ctx context.Context, name string) error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return err
	}, log)
}

// nodesOf makes Nodes of where their metadata comes from.
func nodesOf(source cache.ListerWatcher, get func(context.Context, string) error, log logrus.FieldLogger) (*Nodes, error) {
	informer, err := NewMetadataInformer(source, nameOnly, "the Nodes of the API server", log)
	if err != nil {
		return nil, err
	}
	n := &Nodes{get: get, log: log, informer: informer}
	_, err = n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { n.broadcast() },
		DeleteFunc: func(any) { n.broadcast() },
	})
	if err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	return n, nil
}

// nameOnly drops what nobody looks at.
func nameOnly(node metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}
}

func (n *Nodes) broadcast() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed.Broadcast()
}

// Changed returns a channel that is closed when a Node comes or goes.
func (n *Nodes) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed.Next()
}

// Run follows the API server until ctx ends.
func (n *Nodes) Run(ctx context.Context) { n.informer.RunWithContext(ctx) }

// Has reports whether there is a Node of that name, as far as is known.
func (n *Nodes) Has(name string) bool {
	_, exists, err := n.informer.GetStore().GetByKey(name)
	return exists && err == nil
}

// Gone reports whether there certainly is no Node of that name: none is known, and the
// API server, asked once more, has none.
func (n *Nodes) Gone(ctx context.Context, name string) bool {
	if !n.informer.HasSynced() || n.Has(name) {
		return false
	}
	err := n.get(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		n.log.WithError(err).WithField("node", name).Warn("cannot ask the API server whether a Node exists")
	}
	return apierrors.IsNotFound(err)
}

// Await waits until there is a Node of that name. Somebody must Run.
func (n *Nodes) Await(ctx context.Context, name string) error {
	for {
		changed := n.Changed()
		if n.Has(name) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
