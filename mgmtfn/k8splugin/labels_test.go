package k8splugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/utils/errs"
)

func quietLog() logrus.FieldLogger {
	l := logrus.New()
	l.SetLevel(logrus.PanicLevel)
	return l
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contiv.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlacesComeFromPodLabels(t *testing.T) {
	status := http.StatusOK
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/pods/web-0" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "code": status, "reason": map[int]string{404: "NotFound", 403: "Forbidden"}[status]})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{"name": "web-0", "namespace": "shop", "uid": "u-1", "labels": map[string]string{
				"io.contiv.tenant": "blue", "io.contiv.network": "net1", "io.contiv.net-group": "web",
			}},
		})
	}))
	defer api.Close()
	placer, err := PlacerFromFile(writeConfig(t, `{"K8S_API_SERVER":"`+api.URL+`","K8S_TOKEN":" secret\n"}`), quietLog())
	if err != nil {
		t.Fatal(err)
	}
	req := cniapi.PodRequest{Name: "web-0", Namespace: "shop", PodUID: "u-1"}
	if got, err := placer(t.Context(), req); err != nil || got != (Place{"blue", "net1", "web"}) {
		t.Errorf("%+v, %v", got, err)
	}
	req.PodUID = "u-0" // the pod of that name is another one by now
	if _, err := placer(t.Context(), req); !errs.Is(err, errs.Conflict) {
		t.Errorf("error %v", err)
	}
	for code, kind := range map[int]errs.Kind{404: errs.NotFound, 403: errs.Invalid, 503: errs.Unavailable} {
		status = code
		if _, err := placer(t.Context(), req); !errs.Is(err, kind) {
			t.Errorf("status %d: error %v, expected kind %s", code, err, kind)
		}
	}
}

func TestAPIConfiguration(t *testing.T) {
	if placer, err := PlacerFromFile(filepath.Join(t.TempDir(), "none"), quietLog()); err != nil || placer != nil {
		t.Errorf("without a file: %v, expected no placer and no error", err)
	}
	for content, want := range map[string]string{
		"{":                    "expected a JSON object",
		`{"K8S_TOKEN":"x"}`:    "K8S_API_SERVER is empty",
		`{"K8S_API_SERVER":7}`: "expected a JSON object",
		`{"K8S_API_SERVER":"http://[","K8S_TOKEN":"x"}`:             "contiv.json",
		`{"K8S_API_SERVER":"https://h:1","K8S_CA":"/no/such/file"}`: "contiv.json",
	} {
		if _, err := PlacerFromFile(writeConfig(t, content), quietLog()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", content, err, want)
		}
	}
}
