package k8splugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/utils/errs"
)

// NewPods returns a function that asks the API server for the UIDs of all pods of a
// node, as the runtime knows them.
func NewPods(api *rest.Config, node string) (func(context.Context) (map[string]bool, error), error) {
	client, err := metadataClient(api)
	if err != nil {
		return nil, err
	}
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	return func(ctx context.Context) (map[string]bool, error) {
		list, err := client.Resource(pods).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, errs.Wrap(errs.Unavailable, fmt.Errorf("list the pods of node %s: %w", node, err))
		}
		uids := make(map[string]bool, len(list.Items))
		for i := range list.Items {
			for _, uid := range podUIDs(&list.Items[i]) {
				uids[uid] = true
			}
		}
		return uids, nil
	}, nil
}

// podUIDs are the UIDs by which a pod may be known. A mirror pod, which represents a static
// pod of the kubelet, also has the UID of that one.
func podUIDs(pod *metav1.PartialObjectMetadata) []string {
	uids := []string{string(pod.UID)}
	if mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored != "" {
		uids = append(uids, mirrored)
	}
	return uids
}

// metadataClient creates a client that reads metadata only: labels, annotations, UIDs.
func metadataClient(api *rest.Config) (metadata.Interface, error) {
	cfg := rest.CopyConfig(api)
	cfg.Timeout = 10 * time.Second
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errs.New(errs.Invalid, "client of the API server: %w", err)
	}
	return client, nil
}
