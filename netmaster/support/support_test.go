package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
)

const planted = "hunter2-Pa55"

// pagesOf answers for host1, with a secret on each page.
type pagesOf struct{}

func (pagesOf) Page(_ context.Context, host, path string) ([]byte, error) {
	switch {
	case host != "host1":
		return nil, errors.New("the agent does not answer")
	case path == "/svcstats":
		return nil, errors.New("no switch")
	case path == "/metrics":
		return []byte("x{password=\"" + planted + "\"} 1\n"), nil
	}
	return []byte(`{"of":"` + path + `","token":"` + planted + `","long":"` + strings.Repeat("x", 8000) + `"}`), nil
}

func bundle(t *testing.T, size int) (files map[string]string, m doctorapi.Manifest) {
	t.Helper()
	store := memory.New()
	for key, value := range map[string]string{
		"/contiv.io/obj/a": `{"keep":1,"password":"` + planted + `"}`, "/contiv.io/auth/b": planted, "/contiv.io/state/c": planted,
	} {
		if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte(value))}}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{
		Agents: pagesOf{}, Store: store, Flags: []string{"netmaster", "--etcd-password", planted},
		Cluster: func(context.Context) (*clusterapi.Cluster, error) {
			return &clusterapi.Cluster{Hosts: []clusterapi.Host{{Host: "host1", State: clusterapi.Up}, {Host: "host2", State: clusterapi.Up}, {Host: "host3", State: clusterapi.Gone}}}, nil
		},
		Log: func(w io.Writer) error {
			_, err := io.WriteString(w, "level=info msg=\"a line\" token="+planted+"\n")
			return err
		},
		Doctor: func(context.Context) (*doctorapi.Report, error) { return &doctorapi.Report{}, nil },
	}
	var out bytes.Buffer
	if err := Write(t.Context(), cfg, &out, size); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "contiv-support/")] = string(text)
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	return files, m
}

// TestBundle: everything is in it but secrets, and the manifest says what is not.
func TestBundle(t *testing.T) {
	files, m := bundle(t, doctorapi.DefaultSize)
	for name, text := range files {
		if strings.Contains(text, planted) {
			t.Errorf("%s has a secret: %s", name, text)
		}
	}
	for name, want := range map[string]string{
		"store.json": `"/contiv.io/auth/b"`, "netmaster/flags.txt": "--etcd-password", "netmaster/log.txt": "a line", "hosts/host1/log.txt": "/support/log", "hosts/host1/driver.json": "/inspect/driver", "hosts/host1/metrics.txt": "x{", "doctor.json": "findings",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: %q, want %s", name, files[name], want)
		}
	}
	if len(m.Asked) != 1 || m.Asked[0] != "host1" || len(m.Away) != 2 || m.Away[0].Host != "host2" || m.Away[1].Host != "host3" {
		t.Errorf("asked %v, away %v", m.Asked, m.Away)
	}
	for _, f := range m.Files {
		if (f.Missing != "") != (f.Name == "hosts/host1/services.json") || len(files[f.Name]) != f.Size {
			t.Errorf("the manifest says %+v of %d bytes", f, len(files[f.Name]))
		}
	}
}

// TestBound: a bundle is no larger than it may be, and says what it lacks.
func TestBound(t *testing.T) {
	files, m := bundle(t, doctorapi.LeastSize)
	total, cut := 0, 0
	for _, text := range files {
		total += len(text)
	}
	for _, f := range m.Files {
		if strings.Contains(f.Missing, "did not fit") {
			cut++
		}
	}
	if total > doctorapi.LeastSize || cut == 0 {
		t.Errorf("%d bytes, %d files cut off", total, cut)
	}
}
