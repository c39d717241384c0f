package kubeapi

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// SelectMetadata lists and watches the metadata of the objects that a selector selects.
func SelectMetadata(objects metadata.ResourceInterface, selector fields.Selector) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return objects.Watch(ctx, o)
		},
	}
}

// NewMetadataInformer makes an informer of metadata, of which it keeps what reduce returns. what
// says in the log what cannot be watched.
func NewMetadataInformer(source cache.ListerWatcher, reduce func(metav1.ObjectMeta) metav1.ObjectMeta, what string, log logrus.FieldLogger) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, nil)
	if err := informer.SetTransform(func(o any) (any, error) {
		object, ok := o.(*metav1.PartialObjectMetadata)
		if !ok {
			return o, nil
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: reduce(object.ObjectMeta)}, nil
	}); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.WithError(err).Warn("cannot watch " + what + "; retrying")
	}); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	return informer, nil
}
