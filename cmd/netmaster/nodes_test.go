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
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "contiv.json")
	if err := os.WriteFile(whole, []byte(`{"K8S_API_SERVER":"http://10.0.0.1:8080","K8S_TOKEN":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mode, file  string
		asks, fails bool
		warnings    int
		warningSays string
	}{
		"no file":            {mode: "kubernetes", file: filepath.Join(dir, "none.json"), warnings: 1, warningSays: "no API server is configured"},
		"docker":             {mode: "docker", file: filepath.Join(dir, "none.json")},
		"docker with a file": {mode: "docker", file: broken},
		"broken":             {mode: "kubernetes", file: broken, fails: true},
		"whole":              {mode: "kubernetes", file: whole, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
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
