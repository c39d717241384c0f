package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/contiv/netplugin/install/image"
)

// Names of images, as the specs of Kubernetes 1.36.3 expect them (test/utils/image). None
// is pulled: what is not made here is not there.
const (
	imageAgnhost   = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	imageBusybox   = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
	imageGlibcDNS  = "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0"
	imageConntrack = "registry.k8s.io/e2e-test-images/regression-issue-74839:1.4"
	imagePause     = "registry.k8s.io/pause:3.10.2"
	imageCoreDNS   = "contiv.lab/coredns:1"
)

// tools are the programs of this machine, besides busybox, that specs call in their pods.
var tools = []string{
	"/usr/bin/bash", "/usr/bin/curl", "/usr/bin/dig", "/usr/bin/getent", "/usr/bin/nc.openbsd", "/usr/bin/ss", "/usr/bin/timeout", "/usr/bin/wget",
	"/usr/sbin/ip",
}

// testTree is the root file system of all images: what scripts/k8s-tests has built in the
// directory dir, busybox, and tools.
func testTree(dir string) (*image.Tree, error) {
	t := &image.Tree{}
	for _, d := range []string{"dev", "proc", "root", "sys", "uploads", "results", "etc"} {
		t.Dir(d, 0o755)
	}
	t.Dir("tmp", 0o1777)
	t.Text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644)
	t.Text("etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644)
	t.Text("etc/nsswitch.conf", "hosts: files dns\n", 0o644)
	if err := t.Program("/bin/busybox"); err != nil {
		return nil, err
	}
	names, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("run busybox: %w", err)
	}
	for _, name := range strings.Fields(string(names)) {
		if name != "busybox" {
			t.Link("bin/"+name, "busybox")
		}
	}
	for _, tool := range tools {
		if err := t.Program(tool); err != nil {
			return nil, fmt.Errorf("%s, which scripts/deps installs: %w", tool, err)
		}
	}
	t.Link("bin/sh", "bash") // busybox's shell takes its own programs before these
	t.Link("bin/nc", "nc.openbsd")
	t.Link("bin/ip", "../sbin/ip") // as PATH may find busybox's first
	for _, name := range []string{"agnhost", "coredns", "regression-issue-74839"} {
		if err := t.File(name, filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("%s: run make k8s-tests: %w", name, err)
		}
	}
	t.Link("agnhost-2", "agnhost")
	return t, identity(t)
}

// identity adds the certificate and the key that agnhost serves with, which nobody checks.
func identity(t *image.Tree) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	about := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, &about, &about, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	t.Text("localhost.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), 0o644)
	t.Text("localhost.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o644)
	return nil
}

// writeImages writes an archive with all images to path.
func writeImages(dir, path string) (err error) {
	t, err := testTree(dir)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return errors.Join(image.WriteArchive(
		f, t,
		image.Image{Name: imageAgnhost, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: env},
		image.Image{Name: imageBusybox, Cmd: []string{"/bin/sh"}, Env: env},
		image.Image{Name: imageGlibcDNS, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: env},
		image.Image{Name: imageConntrack, Entrypoint: []string{"/regression-issue-74839"}, Env: env},
		image.Image{Name: imagePause, Entrypoint: []string{"/agnhost", "pause"}, Env: env},
		image.Image{Name: imageCoreDNS, Entrypoint: []string{"/coredns"}, Env: env},
	), f.Close())
}
