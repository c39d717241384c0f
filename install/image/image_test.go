package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// read returns the entries of an archive, as "kind name → link" or name and content.
func read(t *testing.T, archive io.Reader) (names []string, content map[string][]byte) {
	t.Helper()
	content = map[string][]byte{}
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, content
		}
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%o %s", h.Mode, h.Name)
		if h.Linkname != "" {
			name += " → " + h.Linkname
		}
		names = append(names, name)
		if content[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTree: directories come before what is in them, and what belongs into /usr gets
// there, however it is named.
func TestTree(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("copied"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := &Tree{}
	root.Text("/etc/motd", "hello", 0o644)
	root.Dir("tmp", 0o1777)
	root.Link("bin/sh", "busybox")
	root.Link("/usr/bin/ash", "busybox")
	if err := root.File("lib64/ld.so", source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.File("x", source+"-not", 0o755); err == nil {
		t.Error("a file that is not there was added")
	}
	var b bytes.Buffer
	if err := root.WriteTar(&b); err != nil {
		t.Fatal(err)
	}
	again := bytes.Clone(b.Bytes())
	names, content := read(t, &b)
	want := []string{
		"777 bin → usr/bin", "755 etc/", "644 etc/motd", "777 lib64 → usr/lib64", "1777 tmp/", "755 usr/", "755 usr/bin/",
		"777 usr/bin/ash → busybox", "777 usr/bin/sh → busybox", "755 usr/lib64/", "755 usr/lib64/ld.so",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if string(content["etc/motd"]) != "hello" || string(content["usr/lib64/ld.so"]) != "copied" {
		t.Errorf("content %q", content)
	}
	b.Reset()
	if err := root.WriteTar(&b); err != nil || !bytes.Equal(again, b.Bytes()) {
		t.Errorf("the same tree makes another archive, %v", err)
	}
}

// TestArchive: every name in an archive leads to what it says.
func TestArchive(t *testing.T) {
	root := &Tree{}
	root.Text("etc/motd", "hello", 0o644)
	var b bytes.Buffer
	images := []Image{{Name: "a:1", Entrypoint: []string{"/init"}, Env: []string{"A=b"}}, {Name: "b:1", Cmd: []string{"sh"}}}
	if err := WriteArchive(&b, root, images...); err != nil {
		t.Fatal(err)
	}
	_, content := read(t, &b)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(content["manifest.json"], &manifest); err != nil || len(manifest) != len(images) {
		t.Fatalf("%s, %v", content["manifest.json"], err)
	}
	for i, m := range manifest {
		var config struct {
			Config struct{ Entrypoint, Cmd, Env []string }
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		if err := json.Unmarshal(content[m.Config], &config); err != nil {
			t.Fatalf("configuration %s: %v", m.Config, err)
		}
		got := Image{m.RepoTags[0], config.Config.Entrypoint, config.Config.Cmd, config.Config.Env}
		if diff := cmp.Diff(images[i], got); diff != "" {
			t.Error(diff)
		}
		layer := content[m.Layers[0]]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); cmp.Diff([]string{sum}, config.RootFS.DiffIDs) != "" {
			t.Errorf("layer %s is %s", config.RootFS.DiffIDs, sum)
		}
		if names, _ := read(t, bytes.NewReader(layer)); len(names) != 2 {
			t.Errorf("layer has %s", names)
		}
	}
}

// unpack writes Contiv's root file system into a directory. Its binaries print their
// names, and in which mode they run.
func unpack(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range binaries {
		script := "#!/bin/sh\necho " + name + " $CONTIV_NETMASTER_MODE/$CONTIV_NETPLUGIN_MODE${CONTIV_NETPLUGIN_ETCD_USER:+ ca=$CONTIV_NETPLUGIN_ETCD_CA cert=$CONTIV_NETPLUGIN_ETCD_CERT user=$CONTIV_NETPLUGIN_ETCD_USER} \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := base(bin)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tree.WriteTar(&b); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	c := exec.Command("tar", "-x", "-C", root)
	c.Stdin = &b
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	random := int(unix.Mkdev(1, 9))
	if err := unix.Mknod(filepath.Join(root, "dev", "urandom"), unix.S_IFCHR|0o666, random); err != nil {
		t.Fatal(err)
	}
	return root
}

// inside runs a program with dir as its root.
func inside(dir string, env []string, program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Dir, c.Env = "/", append([]string{"PATH=" + searchPath}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: dir}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestRoot: what is in the root file system works in there.
func TestRoot(t *testing.T) {
	root := unpack(t)
	for _, p := range programs {
		arg := "--version"
		if p.path == "/bin/busybox" {
			arg = "--help"
		}
		if out, err := inside(root, nil, p.path, arg); err != nil {
			t.Errorf("%s: %v: %s", p.path, err, out)
		}
	}
	if out, err := inside(root, nil, "/usr/bin/ovsdb-tool", "schema-version", "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		t.Errorf("read the schema: %v: %s", err, out)
	}
	_, err := Root(t.TempDir())
	if !errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("without binaries: %v", err)
	}
}

// apiServer is what earlier releases had in the ConfigMap.
const apiServer = `{"K8S_API_SERVER": "https://__KUBERNETES_SERVICE_HOST__:__KUBERNETES_SERVICE_PORT__", "K8S_TOKEN": "__SERVICEACCOUNT_TOKEN__"}`

// TestEntrypoint: of role and mode (packaging contract of the image).
func TestEntrypoint(t *testing.T) {
	root := unpack(t)
	for name, test := range map[string]struct {
		env    []string
		args   []string
		want   string
		file   string // contiv.json
		secret map[string]string
		failed bool
	}{
		"mode of all": {env: []string{"CONTIV_ROLE=netplugin", "CONTIV_MODE=kubernetes"}, want: "netplugin /kubernetes"},
		"mode of one": {env: []string{"CONTIV_ROLE=netmaster", "CONTIV_MODE=docker", "CONTIV_NETMASTER_MODE=test"}, want: "netmaster test/"},
		"arguments":   {env: []string{"CONTIV_ROLE=netmaster"}, args: []string{"--log-level", "a b"}, want: "netmaster / --log-level a b"},
		"file of the API server": {
			env:  []string{"CONTIV_ROLE=netplugin", "KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=6443", `CONTIV_K8S_CONFIG=` + apiServer},
			want: "netplugin /", file: `{"K8S_API_SERVER": "https://10.0.0.1:6443", "K8S_TOKEN": ""}` + "\n",
		},
		"Secret of the store": {
			env: []string{"CONTIV_ROLE=netplugin"}, secret: map[string]string{"ca.crt": "CA", "user": "contiv:it's $HOME"},
			want: "netplugin / ca=/etc/contiv-store/ca.crt cert= user=contiv:it's $HOME",
		},
		"settings before the Secret": {
			env: []string{"CONTIV_ROLE=netplugin", "CONTIV_NETPLUGIN_ETCD_USER=me:mine"}, secret: map[string]string{"user": "contiv:secret"},
			want: "netplugin / ca= cert= user=me:mine",
		},
		"no role":         {want: `CONTIV_ROLE is "", expected netmaster, netplugin, ovsdb-server or ovs-vswitchd`, failed: true},
		"another program": {env: []string{"CONTIV_ROLE=sh"}, want: `CONTIV_ROLE is "sh", expected netmaster, netplugin, ovsdb-server or ovs-vswitchd`, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			for name, content := range test.secret {
				path := filepath.Join(root, "etc/contiv-store", name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(path)
			}
			out, err := inside(root, test.env, "/contiv/scripts/entrypoint", test.args...)
			if (err != nil) != test.failed || !strings.HasPrefix(out, test.want) {
				t.Errorf("%v: %q, expected %q", err, out, test.want)
			}
			const file = "/etc/contiv/contiv.json"
			if test.file == "" {
				return
			}
			if got, err := os.ReadFile(root + file); err != nil || string(got) != test.file {
				t.Errorf("%s has %q, %v; expected %q", file, got, err, test.file)
			}
		})
	}
}
