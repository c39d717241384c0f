package k8splugin

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Labels and annotations of a pod, or of its namespace for all pods in it, that say
// where a pod belongs.
const (
	labelTenant  = "io.contiv.tenant"
	labelNetwork = "io.contiv.network"
	labelGroup   = "io.contiv.net-group"
)

// NewPlacer returns a function that finds a pod's place by asking the API server.
func NewPlacer(api *rest.Config) (func(context.Context, cniapi.PodRequest) (Place, error), error) {
	cfg := rest.CopyConfig(api)
	cfg.Timeout = 10 * time.Second
	// Labels and UID are all that is needed.
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errs.New(errs.Invalid, "client of the API server: %w", err)
	}
	return func(ctx context.Context, req cniapi.PodRequest) (Place, error) {
		return podPlace(ctx, client, req)
	}, nil
}

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// podPlace reads the labels of the very pod the call is about, for a pod of the same
// name but another UID is not it, and those of its namespace.
func podPlace(ctx context.Context, api metadata.Interface, req cniapi.PodRequest) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var pod, namespace *metav1.PartialObjectMetadata
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		pod, err = api.Resource(pods).Namespace(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
		return unanswered("pod "+req.Namespace+"/"+req.Name, err)
	})
	g.Go(func() (err error) {
		namespace, err = api.Resource(namespaces).Get(ctx, req.Namespace, metav1.GetOptions{})
		return unanswered("namespace "+req.Namespace, err)
	})
	if err := g.Wait(); err != nil {
		return Place{}, err
	}
	if req.PodUID != "" && string(pod.UID) != req.PodUID {
		return Place{}, errs.New(errs.Conflict, "pod %s/%s has UID %s now, the call is for %s", req.Namespace, req.Name, pod.UID, req.PodUID)
	}
	own, all := placeIn(pod), placeIn(namespace)
	if all.Tenant != "" && own.Tenant != "" && own.Tenant != all.Tenant {
		return Place{}, errs.New(errs.Invalid, "pod %s/%s asks for tenant %s, but its namespace belongs to tenant %s: remove %s from the pod",
			req.Namespace, req.Name, own.Tenant, all.Tenant, labelTenant)
	}
	return own.or(all), nil
}

// unanswered says what is wrong when the API server does not tell of an object.
func unanswered(object string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return errs.New(errs.NotFound, "%s: page not found", object)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return errs.New(errs.Invalid, "%s: access denied by the API server", object)
	}
	return errs.Wrap(errs.Unavailable, fmt.Errorf("%s: %w", object, err))
}

// placeIn reads what an object says itself. A label has precedence over an annotation.
func placeIn(o *metav1.PartialObjectMetadata) Place {
	say := func(key string) string {
		if v := o.Labels[key]; v != "" {
			return v
		}
		return o.Annotations[key]
	}
	return Place{Tenant: say(labelTenant), Network: say(labelNetwork), Group: say(labelGroup)}
}

// or fills in what p does not say. A group belongs to a network: that of others is
// nothing for a pod which chooses its network.
func (p Place) or(others Place) Place {
	if p.Tenant == "" {
		p.Tenant = others.Tenant
	}
	if p.Tenant != others.Tenant && others.Tenant != "" {
		return p
	}
	if p.Group == "" && (p.Network == "" || p.Network == others.Network) {
		p.Group = others.Group
	}
	if p.Network == "" {
		p.Network = others.Network
	}
	return p
}
