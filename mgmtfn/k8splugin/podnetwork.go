package k8splugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// PodNetworks returns a function that finds the network of a pod by asking the API server.
func PodNetworks(api *rest.Config, tenancy Tenancy) (func(context.Context, attachment.Pod) (state.NetworkRef, error), error) {
	client, err := metadataClient(api)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, want attachment.Pod) (state.NetworkRef, error) {
		return podNetwork(ctx, client, want, tenancy)
	}, nil
}

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// podNetwork reads the labels of the pod that the call is about (a pod of the same
// name with another UID is a different one), and those of its namespace.
func podNetwork(ctx context.Context, api metadata.Interface, want attachment.Pod, tenancy Tenancy) (state.NetworkRef, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var pod, namespace *metav1.PartialObjectMetadata
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		pod, err = api.Resource(pods).Namespace(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
		return unanswered("pod "+want.Namespace+"/"+want.Name, err)
	})
	g.Go(func() (err error) {
		namespace, err = api.Resource(namespaces).Get(ctx, want.Namespace, metav1.GetOptions{})
		return unanswered("namespace "+want.Namespace, err)
	})
	if err := g.Wait(); err != nil {
		return state.NetworkRef{}, err
	}
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
