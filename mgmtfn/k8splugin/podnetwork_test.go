package k8splugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// meta is the metadata of an object as the API server tells it.
type meta struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// apiServer tells of pod shop/web-0 and of namespace shop, with an HTTP status.
type apiServer struct {
	pod, namespace meta
	status         int
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, ok := map[string]meta{"/api/v1/namespaces/shop/pods/web-0": a.pod, "/api/v1/namespaces/shop": a.namespace}[r.URL.Path]
	status := a.status
	if !ok || r.Header.Get("Authorization") != "Bearer secret" {
		status = http.StatusTeapot
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	answer := map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object}
	if status != http.StatusOK {
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "code": status, "reason": map[int]string{404: "NotFound", 403: "Forbidden"}[status]}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestPodNetworks(t *testing.T) {
	api := &apiServer{status: http.StatusOK}
	server := httptest.NewServer(api)
	defer server.Close()
	find := func(tenancy Tenancy) *PodNetworks {
		t.Helper()
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		n, err := NewPodNetworks(&rest.Config{Host: server.URL, BearerToken: "secret"}, "node1", tenancy, log)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	networkOf := find(Open).Network
	labels := func(tenant, network, group string) map[string]string {
		all := map[string]string{}
		for key, value := range map[string]string{placement.LabelTenant: tenant, placement.LabelNetwork: network, placement.LabelGroup: group} {
			if value != "" {
				all[key] = value
			}
		}
		return all
	}
	ref := func(tenant, network, group string) state.NetworkRef {
		return state.NetworkRef{Tenant: tenant, Network: network, Group: group}
	}
	req := attachment.Pod{Name: "web-0", Namespace: "shop", UID: "u-1"}
	for _, c := range []struct {
		name           string
		pod, namespace meta
		want           state.NetworkRef
		fails          string
	}{
		{name: "nothing is said", want: state.NetworkRef{}},
		{name: "labels of the pod", pod: meta{Labels: labels("blue", "net1", "web")}, want: ref("blue", "net1", "web")},
		{name: "annotations of the pod", pod: meta{Annotations: labels("blue", "net1", "web")}, want: ref("blue", "net1", "web")},
		{
			name: "labels go before annotations", pod: meta{Labels: labels("", "net2", ""), Annotations: labels("blue", "net1", "")},
			want: ref("blue", "net2", ""),
		},
		{name: "labels of the namespace", namespace: meta{Labels: labels("blue", "net1", "web")}, want: ref("blue", "net1", "web")},
		{
			name: "a group of the pod in the namespace's network", pod: meta{Labels: labels("", "", "db")}, namespace: meta{Labels: labels("blue", "net1", "web")},
			want: ref("blue", "net1", "db"),
		},
		{
			name: "a network of the pod is without the namespace's group", pod: meta{Labels: labels("", "net2", "")}, namespace: meta{Labels: labels("blue", "net1", "web")},
			want: ref("blue", "net2", ""),
		},
		{
			name: "a pod chooses its tenant where the namespace does not", pod: meta{Labels: labels("red", "", "")}, namespace: meta{Labels: labels("", "net1", "")},
			want: ref("red", "net1", ""),
		},
		{
			name: "the namespace's tenant stands", pod: meta{Labels: labels("red", "", "")}, namespace: meta{Labels: labels("blue", "", "")},
			fails: "remove io.contiv.tenant from the pod",
		},
		{name: "the same tenant is no conflict", pod: meta{Labels: labels("blue", "", "")}, namespace: meta{Labels: labels("blue", "", "")}, want: state.NetworkRef{Tenant: "blue"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			api.pod, api.namespace = c.pod, c.namespace
			api.pod.Name, api.pod.UID, api.namespace.Name = "web-0", "u-1", "shop"
			got, err := networkOf(t.Context(), req)
			if c.fails != "" {
				if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, expected %q", err, c.fails)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v; expected %+v", got, err, c.want)
			}
		})
	}
	strict := find(Strict).Network
	api.pod, api.namespace = meta{Name: "web-0", UID: "u-1", Labels: labels("blue", "", "")}, meta{Name: "shop"}
	if _, err := strict(t.Context(), req); !errs.Is(err, errs.Invalid) {
		t.Errorf("strict: error %v", err)
	}
	api.namespace.Annotations = map[string]string{AllowedAnnotation: "blue"}
	if got, err := strict(t.Context(), req); err != nil || got != ref("blue", "", "") {
		t.Errorf("strict and allowed: %+v, %v", got, err)
	}
	// A kubelet knows the pods it has from files by another UID than the API server.
	req.UID, api.pod.Annotations = "u-file", map[string]string{corev1.MirrorPodAnnotationKey: "u-file"}
	if _, err := networkOf(t.Context(), req); err != nil {
		t.Errorf("a pod from a file: %v", err)
	}
	req.UID = "u-0" // the pod of that name is another one by now
	if _, err := networkOf(t.Context(), req); !errs.Is(err, errs.Conflict) {
		t.Errorf("error %v", err)
	}
	req.UID = "u-1"
	likely := find(Strict)
	api.pod.Labels = nil
	expectLikely := func(when string, ref state.NetworkRef, ok bool) {
		t.Helper()
		if got, known := likely.Likely(req); known != ok || got != ref {
			t.Errorf("%s: %+v is likely (%t), expected %+v (%t)", when, got, known, ref, ok)
		}
	}
	expectLikely("before anything is known", state.NetworkRef{}, false)
	known := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u-1"}}
	if err := likely.pods.GetStore().Add(known); err != nil {
		t.Fatal(err)
	}
	expectLikely("before the namespace is known", state.NetworkRef{}, false)
	api.namespace.Labels = labels("blue", "net1", "")
	if _, err := likely.Network(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	expectLikely("after the first answer", ref("blue", "net1", ""), true)
	known.Labels = labels("", "net2", "")
	expectLikely("of a pod that chooses what is allowed", ref("blue", "net2", ""), true)
	known.Labels = labels("red", "", "")
	expectLikely("of a pod that chooses what is not allowed", state.NetworkRef{}, false)
	known.Labels, known.UID = nil, "u-0"
	expectLikely("of another pod of that name", state.NetworkRef{}, false)
	known.UID = "u-1"
	api.status = 503
	if _, err := likely.Network(t.Context(), req); err == nil {
		t.Error("an answer from an API server that is unavailable")
	}
	expectLikely("without the API server", state.NetworkRef{}, false)
	for code, kind := range map[int]errs.Kind{404: errs.NotFound, 403: errs.Invalid, 503: errs.Unavailable} {
		api.status = code
		if _, err := networkOf(t.Context(), req); !errs.Is(err, kind) {
			t.Errorf("status %d: error %v, expected kind %s", code, err, kind)
		}
	}
}
