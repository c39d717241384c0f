package kubeapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contiv.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if cfg, err := Load(filepath.Join(t.TempDir(), "none")); err != nil || cfg != nil {
		t.Errorf("without a file: %v, %v; expected nothing", cfg, err)
	}
	cfg, err := Load(write(t, `{"K8S_API_SERVER":"http://10.0.0.1:8080","K8S_TOKEN":" secret\n"}`))
	if err != nil || cfg.Host != "http://10.0.0.1:8080" || cfg.BearerToken != "secret" || cfg.BearerTokenFile != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg.QPS >= 0 {
		t.Errorf("%v requests a second: pods that start together would wait for one another", cfg.QPS)
	}
	for content, want := range map[string]string{
		"{":                 "expected a JSON object",
		`{"K8S_TOKEN":"x"}`: "K8S_API_SERVER is empty",
		// Then it would be the service account's, which tests do not have.
		`{"K8S_API_SERVER":"http://10.0.0.1:8080"}`:                 "token",
		`{"K8S_API_SERVER":7}`:                                      "expected a JSON object",
		`{"K8S_API_SERVER":"https://h:1","K8S_CA":"/no/such/file"}`: "contiv.json",
	} {
		if _, err := Load(write(t, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", content, err, want)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err := os.Stat(serviceAccountToken); os.IsNotExist(err) {
		if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "service account") {
			t.Errorf("in a pod without a service account: %v", err)
		}
	}
}

// Every kind of object is asked for where the API server has it.
func TestClientPaths(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		kind := map[string][2]string{
			"services": {"v1", "ServiceList"}, "nodes": {"v1", "NodeList"}, "pods": {"v1", "PodList"}, "namespaces": {"v1", "NamespaceList"},
			"endpointslices": {"discovery.k8s.io/v1", "EndpointSliceList"}, "networkpolicies": {"networking.k8s.io/v1", "NetworkPolicyList"},
		}[filepath.Base(r.URL.Path)]
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": kind[0], "kind": kind[1], "metadata": map[string]string{"resourceVersion": "7"}, "items": []any{
			map[string]any{"metadata": map[string]string{"name": "one"}},
		}})
	}))
	defer server.Close()
	c, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for path, source := range map[string]cache.ListerWatcher{
		"/api/v1/services": c.Services(), "/api/v1/nodes": c.Nodes(), "/api/v1/pods": c.Pods(), "/api/v1/namespaces": c.Namespaces(),
		"/apis/discovery.k8s.io/v1/endpointslices": c.EndpointSlices(), "/apis/networking.k8s.io/v1/networkpolicies": c.NetworkPolicies(),
	} {
		list, err := cache.ToListerWatcherWithContext(source).ListWithContext(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := <-asked; got != path {
			t.Errorf("asked for %s, expected %s", got, path)
		}
		if l, ok := list.(metav1.ListInterface); !ok || l.GetResourceVersion() != "7" {
			t.Errorf("%s: list %T %+v", path, list, list)
		}
	}
	if got := c.Core().Get().Resource("nodes").Name("n1").URL().Path; got != "/api/v1/nodes/n1" {
		t.Errorf("path %s", got)
	}
}
