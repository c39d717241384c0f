package pki_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

// write puts a user's own certificates into a folder.
func write(t *testing.T, dir string, s pki.Stored) pki.Files {
	t.Helper()
	f := pki.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for path, text := range map[string][]byte{f.CA: s.Roots, f.Cert: s.Cert, f.Key: s.Key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestFiles(t *testing.T) {
	a, other, dir := authority(t), authority(t), t.TempDir()
	agent := pki.Subject{Name: "node1", Unit: pki.UnitAgent}
	good := issue(t, a, agent, time.Now())
	expired := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent, Valid: time.Hour}, time.Now().Add(-3*time.Hour))
	c := pki.NewCredentials()
	if err := write(t, dir, good).Load(c); err != nil || c.Leaf() == nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		s    pki.Stored
		says string
	}{
		{"half a certificate", pki.Stored{Cert: good.Cert[:50], Key: good.Key, Roots: good.Roots}, "--tls-cert"},
		{"half a key", pki.Stored{Cert: good.Cert, Key: good.Key[:50], Roots: good.Roots}, "--tls-key"},
		{"half an authority", pki.Stored{Cert: good.Cert, Key: good.Key, Roots: good.Roots[:50]}, "--tls-ca"},
		{"another authority", pki.Stored{Cert: good.Cert, Key: good.Key, Roots: pki.EncodeCertificates(other.Cert)}, "against --tls-ca"},
		{"expired", expired, "expired"},
	} {
		fresh := pki.NewCredentials()
		if err := write(t, dir, tt.s).Load(fresh); err == nil || !strings.Contains(err.Error(), tt.says) || fresh.Leaf() != nil {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.says)
		}
	}
	if err := (pki.Files{CA: "x"}).Load(c); err == nil || !strings.Contains(err.Error(), "all three") {
		t.Errorf("one file of three: %v", err)
	}
	missing := pki.Files{CA: "/nowhere/ca", Cert: "/nowhere/cert", Key: "/nowhere/key"}
	if err := missing.Load(c); err == nil || !strings.Contains(err.Error(), "/nowhere/ca") {
		t.Errorf("missing files: %v", err)
	}
}

// TestFilesFollow: new files count, half-written ones do not and are logged once.
func TestFilesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, dir := authority(t), t.TempDir()
		first := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
		second := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now().Add(time.Second))
		f, c := write(t, dir, first), pki.NewCredentials()
		if err := f.Load(c); err != nil {
			t.Fatal(err)
		}
		log, said := newLog()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.Follow(ctx, c, log) }()
		write(t, dir, pki.Stored{Cert: second.Cert[:100], Key: second.Key, Roots: second.Roots})
		time.Sleep(time.Minute)
		if !c.Leaf().Equal(parse(t, first.Cert)[0]) {
			t.Error("a half-written certificate is in use")
		}
		if strings.Count(said.String(), "level=error") != 1 {
			t.Errorf("expected one error, found:\n%s", said)
		}
		write(t, dir, second)
		time.Sleep(time.Minute)
		if !c.Leaf().Equal(parse(t, second.Cert)[0]) || !strings.Contains(said.String(), "new certificate in use") {
			t.Errorf("the new certificate is not in use:\n%s", said)
		}
		cancel()
		<-done
	})
}
