package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/utils/cliconf"
)

// TestNewAuthority: only where the key is lost, and a certificate is left.
func TestNewAuthority(t *testing.T) {
	dir := t.TempDir()
	newAuthority := func() (int, string, string) { return execute(t.Context(), "ca", "new", "--tls-dir", dir) }
	if code, _, text := newAuthority(); code != cliconf.ExitFailure || !strings.Contains(text, "the certificate of this netmaster is needed") {
		t.Errorf("in an empty folder: %d %s", code, text)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	open := func() (*ca.CA, error) {
		return ca.Open(t.Context(), ca.Config{Dir: dir, Name: "127.0.0.1:9999", Log: log})
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if code, _, text := newAuthority(); code != cliconf.ExitFailure || !strings.Contains(text, "has the certificate authority") {
		t.Errorf("with an authority: %d %s", code, text)
	}
	if err := os.Remove(filepath.Join(dir, "ca.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "netmaster ca new --tls-dir "+dir) {
		t.Errorf("without the key: %v", err)
	}
	code, text, failed := newAuthority()
	if code != cliconf.ExitOK || !strings.HasPrefix(text, "created certificate authority ") {
		t.Fatalf("%d %s %s", code, text, failed)
	}
	again, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() == first.Hash() || !strings.Contains(text, again.Hash()) || !again.Credentials().Leaf().Equal(first.Credentials().Leaf()) {
		t.Errorf("authority %s after %s, expected a new one and the former certificate", again.Hash(), first.Hash())
	}
	for _, args := range [][]string{{"ca"}, {"ca", "old"}, {"ca", "new", "x"}} {
		if code, _, _ := execute(t.Context(), args...); code != cliconf.ExitUsage {
			t.Errorf("%v: status %d, expected %d", args, code, cliconf.ExitUsage)
		}
	}
}
