package systemtests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab/labtest"
)

// vulncheck runs the script on a program against a database.
func vulncheck(t *testing.T, database string) (out string, code int) {
	t.Helper()
	c := exec.Command(filepath.Join(root, "scripts/vulncheck"), "-mode=binary", filepath.Join(labtest.Bin(t), "contivk8s"))
	c.Env = append(os.Environ(), "VULNDB="+database)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return said.String(), c.ProcessState.ExitCode()
}

// TestVulncheck: a vulnerable module is found, and without a database nothing passes for
// checked.
func TestVulncheck(t *testing.T) {
	if out, code := vulncheck(t, "http://127.0.0.1:1"); code != 1 || !strings.Contains(out, "nothing was checked") {
		t.Errorf("without a database: ends with %d: %s", code, out)
	}
	db := t.TempDir()
	const id = "GO-0000-0001"
	for path, text := range map[string]string{
		"index/db.json":      `{"modified": "2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path": "golang.org/x/sys", "vulns": [{"id": "` + id + `", "modified": "2026-01-01T00:00:00Z"}]}]`,
		"ID/" + id + ".json": `{"schema_version": "1.3.1", "id": "` + id + `", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z", "details": "made up", "database_specific": {"url": "https://example.com/"},
			"affected": [{"package": {"name": "golang.org/x/sys", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "golang.org/x/sys/unix"}]}}]}`,
	} {
		file := filepath.Join(db, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := vulncheck(t, "file://"+db); code != 3 || !strings.Contains(out, id) {
		t.Errorf("with a vulnerable module: ends with %d: %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(db, "index/modules.json"), []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := vulncheck(t, "file://"+db); code != 0 {
		t.Errorf("without vulnerable modules: ends with %d: %s", code, out)
	}
}
