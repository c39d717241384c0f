package k8splugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/kubeapi"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// PodNetworks finds the networks of a node's pods. It implements attachment.PodNetworks.
type PodNetworks struct {
	api     metadata.Interface
	tenancy Tenancy
	pods    cache.SharedIndexInformer // of the node

	mu         sync.Mutex
	namespaces map[string]*metav1.PartialObjectMetadata // as last answered
}

// mostNamespaces bounds what is remembered.
const mostNamespaces = 1024

// NewPodNetworks makes PodNetworks of a node. Nothing is likely before Run.
func NewPodNetworks(api *rest.Config, node string, tenancy Tenancy, log logrus.FieldLogger) (*PodNetworks, error) {
	client, err := metadataClient(api)
	if err != nil {
		return nil, err
	}
	watching, err := metadata.NewForConfig(api) // without a time limit
	if err != nil {
		return nil, errs.New(errs.Invalid, "client of the API server: %w", err)
	}
	ofNode := kubeapi.SelectMetadata(watching.Resource(pods), fields.OneTermEqualSelector("spec.nodeName", node))
	informer, err := kubeapi.NewMetadataInformer(ofNode, namesOnly, "the pods of this node", log)
	if err != nil {
		return nil, err
	}
	return &PodNetworks{api: client, tenancy: tenancy, pods: informer, namespaces: map[string]*metav1.PartialObjectMetadata{}}, nil
}

// namesOnly drops what does not name a pod or its network.
func namesOnly(pod metav1.ObjectMeta) metav1.ObjectMeta {
	small := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}
	for _, key := range []string{placement.LabelTenant, placement.LabelNetwork, placement.LabelGroup, corev1.MirrorPodAnnotationKey} {
		if value, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&small, key, value)
		}
	}
	return small
}

// Run follows the node's pods until ctx ends.
func (n *PodNetworks) Run(ctx context.Context) { n.pods.RunWithContext(ctx) }

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// Network asks the API server for the labels of the pod that the call is about (a pod of the
// same name with another UID is a different one), and those of its namespace.
func (n *PodNetworks) Network(ctx context.Context, want attachment.Pod) (state.NetworkRef, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var pod, namespace *metav1.PartialObjectMetadata
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		pod, err = n.api.Resource(pods).Namespace(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		return unanswered("pod "+want.Namespace+"/"+want.Name, err)
	})
	g.Go(func() (err error) {
		namespace, err = n.api.Resource(namespaces).Get(ctx, want.Namespace, metav1.GetOptions{})
		return unanswered("namespace "+want.Namespace, err)
	})
	err := g.Wait()
	n.remember(want.Namespace, namespace, err)
	if err != nil {
		return state.NetworkRef{}, err
	}
	return choose(want, pod, namespace, n.tenancy)
}

// Likely is what Network will return if neither the pod nor its namespace has just changed.
// Watches lag, and a namespace is as it was when a pod of it was last asked about: an
// answer that must be right is Network's.
func (n *PodNetworks) Likely(want attachment.Pod) (state.NetworkRef, bool) {
	n.mu.Lock()
	namespace := n.namespaces[want.Namespace]
	n.mu.Unlock()
	found, ok, err := n.pods.GetStore().GetByKey(want.Namespace + "/" + want.Name)
	pod, isPod := found.(*metav1.PartialObjectMetadata)
	if namespace == nil || !ok || err != nil || !isPod {
		return state.NetworkRef{}, false
	}
	ref, err := choose(want, pod, namespace, n.tenancy)
	return ref, err == nil
}

// remember keeps what the API server says of a namespace. While it does not answer, nothing
// is likely.
func (n *PodNetworks) remember(name string, namespace *metav1.PartialObjectMetadata, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		delete(n.namespaces, name)
		return
	case len(n.namespaces) >= mostNamespaces:
		clear(n.namespaces)
	}
	n.namespaces[name] = namespace
}

// choose is the network that a pod and its namespace name together.
func choose(want attachment.Pod, pod, namespace *metav1.PartialObjectMetadata, tenancy Tenancy) (state.NetworkRef, error) {
	if want.UID != "" && !slices.Contains(podUIDs(pod), want.UID) {
		return state.NetworkRef{}, errs.New(errs.Conflict, "pod %s/%s has UID %s now, the call is for %s", want.Namespace, want.Name, pod.UID, want.UID)
	}
	own, all := placement.Annotated(pod.Labels, pod.Annotations), placement.Annotated(namespace.Labels, namespace.Annotations)
	if all.Tenant != "" && own.Tenant != "" && own.Tenant != all.Tenant {
		return state.NetworkRef{}, errs.New(errs.Invalid, "pod %s/%s asks for tenant %s, but its namespace belongs to tenant %s: remove %s from the pod",
			want.Namespace, want.Name, own.Tenant, all.Tenant, placement.LabelTenant)
	}
	ref := placement.InNamespace(own, all)
	if tenancy == Strict {
		if err := permit(want, ref, all, namespace.Annotations[AllowedAnnotation]); err != nil {
			return state.NetworkRef{}, err
		}
	}
	return ref, nil
}

// unanswered is the error when the API server does not return an object.
func unanswered(object string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return errs.New(errs.NotFound, "%s: page not found", object)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return errs.New(errs.Invalid, "%s: access denied by the API server", object)
	}
	return errs.Wrap(errs.Unavailable, fmt.Errorf("ask the API server for %s: %w", object, err))
}
