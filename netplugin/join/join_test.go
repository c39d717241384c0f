package join_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

func TestJoinByToken(t *testing.T) {
	m := start(t, ca.Config{})
	h := newHost(t, "node1", m)
	h.give(t, newToken(t, m, securityapi.TokenRequest{}))
	c, stop := h.up(t)
	if who, err := ping(c, m); err != nil || who != "host node1" {
		t.Errorf("%q, %v", who, err)
	}
	leaf := c.Leaf()
	stop()
	// The token is used up; what is on disk is enough.
	again, _ := h.up(t)
	if !again.Leaf().Equal(leaf) {
		t.Error("the agent has another certificate after a restart")
	}
	if who, err := ping(again, m); err != nil || who != "host node1" {
		t.Errorf("%q, %v", who, err)
	}
}

func TestJoinBySocket(t *testing.T) {
	m := start(t, ca.Config{})
	h := newHost(t, "node1", m)
	h.Socket = socket(t, m)
	c, _ := h.up(t)
	if who, err := ping(c, m); err != nil || who != "host node1" {
		t.Errorf("%q, %v", who, err)
	}
}

// reviews are the ServiceAccount tokens that Kubernetes knows: account and node.
type reviews map[string][2]string

func (r reviews) Review(_ context.Context, token string) (account, node string, err error) {
	known, ok := r[token]
	if !ok {
		return "", "", errs.New(errs.Invalid, "unknown token")
	}
	return known[0], known[1], nil
}

// TestJoinByServiceAccount, with the cluster's authority given, and the first one believed.
func TestJoinByServiceAccount(t *testing.T) {
	m := start(t, ca.Config{ServiceAccount: "kube-system/contiv", Reviewer: reviews{"good": {"kube-system/contiv", "node1"}}})
	for _, given := range []bool{true, false} {
		h := newHost(t, "node1", m)
		h.AccountFile = filepath.Join(t.TempDir(), "account")
		text := map[string]string{h.AccountFile: "good\n"}
		if given {
			h.AuthorityFile = filepath.Join(t.TempDir(), "ca.crt")
			text[h.AuthorityFile] = string(pki.EncodeCertificates(m.CA.Credentials().Roots()...))
		}
		for path, text := range text {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, stop := h.up(t)
		if who, err := ping(c, m); err != nil || who != "host node1" {
			t.Errorf("%q, %v", who, err)
		}
		if warned := strings.Contains(h.lines.String(), "believing the first answer"); warned == given {
			t.Errorf("authority given: %t, warned: %t", given, warned)
		}
		stop()
	}
	other := start(t, ca.Config{})
	h := newHost(t, "node1", m)
	h.AccountFile, h.AuthorityFile = filepath.Join(t.TempDir(), "account"), filepath.Join(t.TempDir(), "ca.crt")
	_ = os.WriteFile(h.AccountFile, []byte("good"), 0o600)
	_ = os.WriteFile(h.AuthorityFile, pki.EncodeCertificates(other.CA.Credentials().Roots()...), 0o600)
	if _, err := h.try(t, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a netmaster of another authority: %v", err)
	}
}

// TestJoinRefused: nothing is on disk, the reason is logged once and handed on, and says what
// to do.
func TestJoinRefused(t *testing.T) {
	m, other := start(t, ca.Config{}), start(t, ca.Config{})
	good := newToken(t, m, securityapi.TokenRequest{})
	parts := strings.Split(good, ".")
	swap := func(i int, text string) string {
		p := append([]string{}, parts...)
		p[i] = text
		return strings.Join(p, ".")
	}
	used := newToken(t, m, securityapi.TokenRequest{})
	first := newHost(t, "node0", m)
	first.give(t, used)
	first.up(t)
	for _, tt := range []struct{ name, token, says string }{
		{"none", "", "netctl host token create"},
		{"used", used, "has been used"},
		{"wrong hash", swap(1, other.CA.Hash()), "not the one of the join token"},
		{"wrong secret", swap(3, "x"+parts[3]), "unknown"},
		{"of another cluster", newToken(t, other, securityapi.TokenRequest{}), "not the one of the join token"},
		{"half", good[:len(good)/2], "join token: expected CONTIV1"},
		{"hash cut short", swap(1, parts[1][:10]), "the hash of the certificate authority is damaged"},
		{"for another label", newToken(t, m, securityapi.TokenRequest{Host: "node9"}), "for host node9"},
		{"for monitors", newToken(t, m, securityapi.TokenRequest{Monitor: true}), "expected that of agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, "node1", m)
			var told error
			h.Waiting = func(err error) { told = err }
			h.give(t, tt.token)
			_, err := h.try(t, 1200*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), tt.says) || told == nil {
				t.Fatalf("%v, expected %q", err, tt.says)
			}
			if n := strings.Count(h.lines.String(), "cannot join the cluster"); n != 1 && tt.name != "for monitors" {
				t.Errorf("logged %d times:\n%s", n, h.lines)
			}
			if secret := parts[3]; strings.Contains(h.lines.String()+err.Error(), secret) {
				t.Error("the secret is in the log")
			}
			if _, err := os.Stat(filepath.Join(h.Dir, "identity.pem")); !errors.Is(err, fs.ErrNotExist) {
				t.Error("there is a certificate on disk")
			}
		})
	}
}

// TestJoinWaits: for a netmaster that does not answer yet, and for a token that comes later.
func TestJoinWaits(t *testing.T) {
	m := start(t, ca.Config{})
	h := newHost(t, "node1", m)
	reachable := make(chan struct{})
	masters := h.Masters
	h.Masters = func() []string {
		select {
		case <-reachable:
			return append([]string{"https://127.0.0.1:1"}, masters()...)
		default:
			return []string{"https://127.0.0.1:1"}
		}
	}
	waiting := make(chan error, 100)
	h.Waiting = func(err error) { waiting <- err }
	go func() {
		<-waiting
		h.give(t, newToken(t, m, securityapi.TokenRequest{}))
		<-waiting
		close(reachable)
	}()
	c, _ := h.up(t)
	if who, err := ping(c, m); err != nil || who != "host node1" {
		t.Errorf("%q, %v", who, err)
	}
}

// TestDisk: a certificate that is damaged, expired, or another host's is replaced, with the
// reason in the log.
func TestDisk(t *testing.T) {
	m := start(t, ca.Config{})
	a, err := pki.NewAuthority("old", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	save := func(s pki.Subject, at time.Time) func(*host) error {
		return func(h *host) error {
			cert, key, err := a.Issue(s, at)
			if err != nil {
				return err
			}
			return pki.Dir(h.Dir).Save(pki.Stored{Cert: cert, Key: key, Roots: pki.EncodeCertificates(a.Cert)})
		}
	}
	agent := pki.Subject{Name: "node1", Unit: pki.UnitAgent}
	for _, tt := range []struct {
		name string
		disk func(*host) error
		says string
	}{
		{"half-written", func(h *host) error {
			return errors.Join(save(agent, time.Now())(h), os.Truncate(filepath.Join(h.Dir, "identity.pem"), 300))
		}, "is damaged"},
		{"empty", func(h *host) error {
			return errors.Join(save(agent, time.Now())(h), os.Truncate(filepath.Join(h.Dir, "roots.pem"), 0))
		}, "is damaged"},
		{"expired", save(pki.Subject{Name: "node1", Unit: pki.UnitAgent, Valid: time.Hour}, time.Now().Add(-5*time.Hour)), "has expired"},
		{"of another host", save(pki.Subject{Name: "node2", Unit: pki.UnitAgent}, time.Now()), "agent node2"},
		{"of a netmaster", save(pki.Subject{Name: "node1", Unit: pki.UnitMaster}, time.Now()), "master node1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, "node1", m)
			if err := tt.disk(h); err != nil {
				t.Fatal(err)
			}
			h.give(t, newToken(t, m, securityapi.TokenRequest{}))
			c, _ := h.up(t)
			if who, err := ping(c, m); err != nil || who != "host node1" {
				t.Errorf("%q, %v", who, err)
			}
			if !strings.Contains(h.lines.String(), tt.says) {
				t.Errorf("the log does not say %q:\n%s", tt.says, h.lines)
			}
		})
	}
}

// TestRevoked: the log says what to do, and a new token is enough to be back, without a
// restart.
func TestRevoked(t *testing.T) {
	m := start(t, ca.Config{})
	h := newHost(t, "node1", m)
	h.give(t, newToken(t, m, securityapi.TokenRequest{Uses: 10}))
	c, _ := h.up(t)
	m.Root(http.MethodDelete, securityapi.PathHosts+"/node1", nil, nil)
	eventually.True(t, "the log says what to do", func() bool {
		return strings.Contains(h.lines.String(), "create a new join token with: netctl host token create")
	})
	if _, err := ping(c, m); err == nil {
		t.Error("a revoked host is served")
	}
	h.give(t, newToken(t, m, securityapi.TokenRequest{}))
	eventually.True(t, "the host is back", func() bool { who, err := ping(c, m); return err == nil && who == "host node1" })
}
