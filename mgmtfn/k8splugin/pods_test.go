package k8splugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/utils/errs"
)

func TestPodsOfANode(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("fieldSelector"); r.URL.Path != "/api/v1/pods" || got != "spec.nodeName=node-7" {
			t.Errorf("asked for %s of %q", r.URL.Path, got)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
			"items": []any{
				map[string]any{"metadata": meta{Name: "web-0", UID: "u-1"}},
				map[string]any{"metadata": meta{Name: "etcd", UID: "u-2", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "u-file"}}},
			},
		})
	}))
	defer server.Close()
	list, err := NewPods(&rest.Config{Host: server.URL}, "node-7")
	if err != nil {
		t.Fatal(err)
	}
	got, err := list(t.Context())
	if want := map[string]bool{"u-1": true, "u-2": true, "u-file": true}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("pods %v, %v; expected %v", got, err, want)
	}
	status = http.StatusServiceUnavailable
	if _, err := list(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("error %v, expected that it is unavailable", err)
	}
}
