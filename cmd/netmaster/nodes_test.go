package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// Without an API server netmaster does without, and says so once; where there is no
// cluster of Kubernetes it says nothing.
func TestNoNodesWithoutAnAPIServer(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "contiv.json")
	if err := os.WriteFile(whole, []byte(`{"K8S_API_SERVER":"http://10.0.0.1:8080","K8S_TOKEN":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	type nodesCase struct {
		pod         string // address of the API server that a pod is told
		mode, file  string
		asks, fails bool
		warnings    int
		warningSays string
	}
	cases := map[string]nodesCase{
		"no file":            {mode: "kubernetes", file: filepath.Join(dir, "none.json"), warnings: 1, warningSays: "no API server is configured"},
		"docker":             {mode: "docker", file: filepath.Join(dir, "none.json")},
		"docker with a file": {mode: "docker", file: broken},
		"broken":             {mode: "kubernetes", file: broken, fails: true},
		"whole":              {mode: "kubernetes", file: whole, asks: true},
	}
	if _, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token"); os.IsNotExist(err) {
		cases["a pod without a service account"] = nodesCase{
			pod: "10.96.0.1", mode: "kubernetes", file: filepath.Join(dir, "none.json"), warnings: 1, warningSays: "service account cannot be used",
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", c.pod)
			t.Setenv("KUBERNETES_SERVICE_PORT", "443")
			var said bytes.Buffer
			log := logrus.New()
			log.SetOutput(&said)
			o := &options{kubeConfig: c.file}
			o.network.Mode = c.mode
			nodes, err := o.nodes(log)
			if (nodes != nil) != c.asks || (err != nil) != c.fails {
				t.Errorf("%v, %v", nodes, err)
			}
			if n := strings.Count(said.String(), "\n"); n != c.warnings || !strings.Contains(said.String(), c.warningSays) {
				t.Errorf("said %q, expected %d warnings", said.String(), c.warnings)
			}
		})
	}
}
