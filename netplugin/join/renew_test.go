package join_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
)

// load pings netmasters with hosts' certificates, each ping a handshake, until stop.
func load(t *testing.T, hosts []*pki.Credentials, masters []*catest.Master) (made *atomic.Int64, stop func()) {
	t.Helper()
	made = new(atomic.Int64)
	var all sync.WaitGroup
	end := make(chan struct{})
	for _, c := range hosts {
		for _, m := range masters {
			all.Go(func() {
				for {
					select {
					case <-end:
						return
					case <-time.After(5 * time.Millisecond):
					}
					if _, err := ping(c, m); err != nil {
						t.Errorf("ping: %v", err)
						return
					}
					made.Add(1)
				}
			})
		}
	}
	stop = sync.OnceFunc(func() { close(end); all.Wait() })
	t.Cleanup(stop)
	return made, stop
}

// TestShortCertificates: those of host and netmaster last seconds, and are renewed many times
// under traffic that notices nothing.
func TestShortCertificates(t *testing.T) {
	m := start(t, ca.Config{CertTTL: eventually.Scaled(2 * time.Second)})
	h := newHost(t, "node1", m)
	h.give(t, newToken(t, m, securityapi.TokenRequest{}))
	c, _ := h.up(t)
	made, stop := load(t, []*pki.Credentials{c}, []*catest.Master{m})
	serials := map[string]bool{}
	eventually.True(t, "five renewals of the host", func() bool {
		serials[c.Leaf().SerialNumber.String()] = true
		return len(serials) > 5 || t.Failed()
	})
	stop()
	t.Logf("%d handshakes over %d certificates", made.Load(), len(serials))
	if strings.Contains(h.lines.String(), "level=warning") || strings.Contains(h.lines.String(), "level=error") {
		t.Errorf("renewals are worth a word:\n%s", h.lines)
	}
}

// TestRotation: agents take part in a rotation by themselves, one that was down comes later,
// and no handshake fails.
func TestRotation(t *testing.T) {
	m := start(t, ca.Config{Settle: time.Second})
	var hosts []*pki.Credentials
	for _, label := range []string{"node1", "node2", "node3"} {
		h := newHost(t, label, m)
		h.give(t, newToken(t, m, securityapi.TokenRequest{}))
		c, _ := h.up(t)
		hosts = append(hosts, c)
	}
	down := newHost(t, "down", m)
	down.give(t, newToken(t, m, securityapi.TokenRequest{}))
	_, stopDown := down.up(t)
	stopDown()
	made, stop := load(t, hosts, []*catest.Master{m})
	eventually.True(t, "traffic", func() bool { return made.Load() > 20 })
	status := func() (s securityapi.Status) { m.Root(http.MethodGet, securityapi.PathStatus, nil, &s); return s }
	m.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	eventually.True(t, "only the host that is down is waited for", func() bool {
		w := status().Authority.Waiting
		return len(w) == 1 && w[0] == "down"
	})
	// A token of before the rotation pins the former authority, which counts until the end.
	back, _ := down.up(t)
	eventually.True(t, "the rotation ends by itself", func() bool { return !status().Authority.Rotating })
	for _, c := range append(hosts, back) {
		eventually.True(t, "hosts forget the former authority", func() bool { return len(c.Roots()) == 1 && pki.KeyHash(c.Roots()[0]) == m.CA.Hash() })
	}
	n := made.Load()
	eventually.True(t, "traffic afterwards", func() bool { return made.Load() > n+20 })
	stop()
	t.Logf("%d handshakes", made.Load())
}

// TestTokenOfFormerAuthority: made before a rotation, used in it.
func TestTokenOfFormerAuthority(t *testing.T) {
	m := start(t, ca.Config{Settle: time.Hour})
	token := newToken(t, m, securityapi.TokenRequest{})
	m.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	h := newHost(t, "node1", m)
	h.give(t, token)
	c, _ := h.up(t)
	if who, err := ping(c, m); err != nil || who != "host node1" {
		t.Errorf("%q, %v", who, err)
	}
}
