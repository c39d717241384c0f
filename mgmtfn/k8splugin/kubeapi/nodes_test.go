package kubeapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	kubetest "k8s.io/client-go/tools/cache/testing"
)

func node(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
	}
}

// A Node is gone when it is known to be, and the API server says so too.
func TestNodes(t *testing.T) {
	source := kubetest.NewFakeControllerSource()
	source.Add(node("n1"))
	source.Add(node("n2"))
	notFound := error(apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "it"))
	var says atomic.Pointer[error]
	says.Store(&notFound)
	n, err := nodesOf(source, func(context.Context, string) error { return *says.Load() }, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if n.Gone(t.Context(), "n3") {
		t.Error("n3 is gone before anything is known")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	for _, name := range []string{"n1", "n2"} {
		if err := n.Await(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if !cache.WaitForCacheSync(t.Context().Done(), n.informer.HasSynced) {
		t.Fatal("not all is known")
	}
	for name, want := range map[string]bool{"n1": false, "n2": false, "n3": true} {
		if got := n.Gone(t.Context(), name); got != want {
			t.Errorf("%s is gone: %t", name, got)
		}
	}
	source.Delete(node("n2"))
	for {
		changed := n.Changed()
		if !n.Has("n2") {
			break
		}
		<-changed
	}
	if !n.Gone(t.Context(), "n2") {
		t.Error("n2 is not gone after its deletion")
	}
	// What is known may be old: a Node that the API server has, or says nothing of, is not gone.
	for _, err := range []error{nil, errors.New("no API server")} {
		says.Store(&err)
		if n.Gone(t.Context(), "n2") {
			t.Errorf("n2 is gone though the API server says %v", err)
		}
	}
	cancel()
	<-done
	late, stop := context.WithCancel(t.Context())
	stop()
	if err := n.Await(late, "n9"); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for nobody: %v", err)
	}
}
