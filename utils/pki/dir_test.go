package pki_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

func TestDir(t *testing.T) {
	dir := pki.Dir(filepath.Join(t.TempDir(), "a", "tls"))
	if _, err := dir.Load(); !errs.Is(err, errs.NotFound) {
		t.Errorf("an empty folder: %v", err)
	}
	s := issue(t, authority(t), pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
	for range 2 { // replacing is as good as making
		if err := dir.Save(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := dir.Load()
	if err != nil || !bytes.Equal(got.Cert, s.Cert) || !bytes.Equal(got.Key, s.Key) || !bytes.Equal(got.Roots, s.Roots) {
		t.Errorf("what is loaded is not what was saved: %v", err)
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, expected 2; %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, expected 600; %v", e.Name(), info.Mode().Perm(), err)
		}
	}
	if info, err := os.Stat(string(dir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %o, expected 700; %v", info.Mode().Perm(), err)
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Load(); !errs.Is(err, errs.NotFound) {
		t.Errorf("after Remove: %v", err)
	}
}

// TestDirDamaged: a file that ends early, wherever, is told from one that is missing.
func TestDirDamaged(t *testing.T) {
	dir := pki.Dir(t.TempDir())
	s := issue(t, authority(t), pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
	for _, name := range []string{"identity.pem", "roots.pem"} {
		if err := dir.Save(s); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(string(dir), name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 10, len(whole) / 2, len(whole) - 10} {
			if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := dir.Load(); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), path+" is damaged") {
				t.Errorf("%s with %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
		if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Load(); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s with 2 MiB: %v", name, err)
		}
	}
}

// TestWriteFails: what cannot be written leaves the former file, and nothing else.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil { // no rename replaces this
		t.Fatal(err)
	}
	if err := pki.WriteFile(path, []byte("x")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, expected an error that names %s", err, path)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d entries, expected 1: a temporary file is left", len(entries))
	}
}

// TestWriteForOwner: what root writes into the folder of a daemon that does not run as root,
// that daemon can read.
func TestWriteForOwner(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chown(dir, 4242, 4343); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	if err := pki.WriteFile(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 4242 || owner.Gid != 4343 {
		t.Errorf("owner %d:%d, expected 4242:4343", owner.Uid, owner.Gid)
	}
}
