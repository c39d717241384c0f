package k8splugin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestKubernetesDefectTable checks that every test docs/defects-kubernetes.md names exists.
func TestKubernetesDefectTable(t *testing.T) {
	const root = "../.."
	table, err := os.ReadFile(root + "/docs/defects-kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range []string{"mgmtfn/attachment", "mgmtfn/k8splugin", "netmaster/api", "install/k8s", "test/kubernetes"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(table, -1)
	if len(named) < 20 {
		t.Errorf("the table names %d tests", len(named))
	}
	for _, m := range named {
		if !known[string(m[1])] {
			t.Errorf("there is no %s", m[1])
		}
	}
}
