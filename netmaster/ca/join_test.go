package ca_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

func TestHostJoins(t *testing.T) {
	m := start(t, ca.Config{})
	c := member(t, m, "node1")
	leaf := c.Leaf()
	if peer := pki.PeerOf(leaf); peer.Name != "node1" || peer.Unit != pki.UnitAgent {
		t.Errorf("the certificate is that of %s", peer)
	}
	resp, err := client(t, c).Get(m.URL + "/ping")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); string(text) != "host node1" {
		t.Errorf("netmaster says %q, expected host node1", text)
	}
	var hosts []securityapi.Host
	m.Root(http.MethodGet, securityapi.PathHosts, nil, &hosts)
	found := false
	for _, h := range hosts {
		found = found || h.Name == "node1" && h.State == securityapi.HostValid && h.Unit == "agent" && strings.HasPrefix(h.Joined, "token ")
	}
	if !found {
		t.Errorf("node1 is not listed: %+v", hosts)
	}
}

// TestJoinRefused: who has no token that counts gets nothing, and is told why only as far as
// the secret is known.
func TestJoinRefused(t *testing.T) {
	m := start(t, ca.Config{})
	id, secret := newToken(t, m, securityapi.TokenRequest{})
	bound, boundSecret := newToken(t, m, securityapi.TokenRequest{Host: "node7"})
	for _, tt := range []struct {
		name, id, secret, host string
		status                 int
		says                   string
	}{
		{"no token", "", "", "node1", 401, "expected a join token"},
		{"unknown token", "abcdef", secret, "node1", 401, "unknown"},
		{"an id that is a path", "../hosts/x", secret, "node1", 401, "unknown"},
		{"wrong secret", id, secret[1:] + "x", "node1", 401, "unknown"},
		{"secret of another token", id, boundSecret, "node1", 401, "unknown"},
		{"no secret", id, "", "node1", 401, "unknown"},
		{"another label than bound", bound, boundSecret, "node1", 403, "for host node7"},
		{"label that is none", id, secret, "a/b", 400, "host label"},
		{"no label", id, secret, "", 400, "host label"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, text := join(t, m, tt.id, tt.secret, tt.host); code != tt.status || !strings.Contains(text, tt.says) {
				t.Errorf("%d %s, expected %d and %q", code, text, tt.status, tt.says)
			}
		})
	}
	// None of this has used a token up.
	if code, text := join(t, m, id, secret, "node1"); code != http.StatusOK {
		t.Errorf("the first join: %d %s", code, text)
	}
	if code, text := join(t, m, bound, boundSecret, "node7"); code != http.StatusOK {
		t.Errorf("the join of the bound label: %d %s", code, text)
	}
}

func TestJoinTwice(t *testing.T) {
	m := start(t, ca.Config{})
	id, secret := newToken(t, m, securityapi.TokenRequest{})
	if code, text := join(t, m, id, secret, "node1"); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, host := range []string{"node1", "node2"} {
		if code, text := join(t, m, id, secret, host); code != http.StatusUnauthorized || !strings.Contains(text, "has been used") {
			t.Errorf("second use by %s: %d %s", host, code, text)
		}
	}
}

// TestJoinAgainWithLostAnswer: with the same key the same token gives a certificate again,
// until another token has given one.
func TestJoinAgainWithLostAnswer(t *testing.T) {
	m := start(t, ca.Config{})
	id, secret := newToken(t, m, securityapi.TokenRequest{})
	csr, _ := request(t)
	ask := func() int {
		code, _ := m.As(anonymous, http.MethodPost, securityapi.PathJoin, securityapi.JoinRequest{ID: id, Secret: secret, Host: "node1", CSR: csr}, nil)
		return code
	}
	if first, second := ask(), ask(); first != 200 || second != 200 {
		t.Fatalf("%d, then %d with the same key; expected 200 twice", first, second)
	}
	member(t, m, "node1")
	if code := ask(); code != http.StatusUnauthorized {
		t.Errorf("%d after another token was used, expected 401", code)
	}
}

// TestJoinNeedsFreshToken: a token of many uses does not give away the name of a host that
// has joined; one that was made afterwards does.
func TestJoinNeedsFreshToken(t *testing.T) {
	m := start(t, ca.Config{})
	id, secret := newToken(t, m, securityapi.TokenRequest{Uses: 5})
	member(t, m, "node1")
	if code, text := join(t, m, id, secret, "node1"); code != http.StatusForbidden || !strings.Contains(text, "--host node1") {
		t.Errorf("an old token for a host that has a certificate: %d %s", code, text)
	}
	if code, text := join(t, m, id, secret, "node2"); code != http.StatusOK {
		t.Errorf("another host: %d %s", code, text)
	}
	id, secret = newToken(t, m, securityapi.TokenRequest{})
	if code, text := join(t, m, id, secret, "node1"); code != http.StatusOK {
		t.Errorf("a fresh token: %d %s", code, text)
	}
}

func TestJoinExpired(t *testing.T) {
	m := start(t, ca.Config{})
	id, secret := newToken(t, m, securityapi.TokenRequest{TTL: "1ns"})
	eventually.True(t, "the token expires", func() bool {
		code, text := join(t, m, id, secret, "node1")
		return code == http.StatusUnauthorized && strings.Contains(text, "expired")
	})
	newToken(t, m, securityapi.TokenRequest{}) // which removes what is over
	var left []securityapi.Token
	m.Root(http.MethodGet, securityapi.PathTokens, nil, &left)
	if len(left) != 1 {
		t.Errorf("%d tokens are listed, expected 1", len(left))
	}
	m.Root(http.MethodDelete, securityapi.PathTokens+"/"+left[0].ID, nil, nil)
	if code, _ := m.As(identity.Identity{Kind: identity.Root}, http.MethodDelete, securityapi.PathTokens+"/"+left[0].ID, nil, nil); code != http.StatusNotFound {
		t.Errorf("removing it twice: %d, expected 404", code)
	}
}

// TestJoinRace: of two netmasters with one store, and many that join at once, one gives the
// certificate.
func TestJoinRace(t *testing.T) {
	store := newStore(t)
	secret := []byte(strings.Repeat("s", ca.SecretMin))
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret}, store)
	second := catest.Start(t, catest.Port(t), ca.Config{Secret: secret, Join: []string{first.URL}}, store.Connect())
	for range 20 {
		id, tok := newToken(t, first, securityapi.TokenRequest{})
		var given, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				m := []*catest.Master{first, second}[i%2]
				switch code, text := join(t, m, id, tok, "race"+id+string(rune('a'+i))); code {
				case http.StatusOK:
					given.Add(1)
				case http.StatusUnauthorized:
					refused.Add(1)
				default:
					t.Errorf("%d %s", code, text)
				}
			})
		}
		all.Wait()
		if given.Load() != 1 || refused.Load() != 5 {
			t.Fatalf("%d joined and %d were refused, expected 1 and 5", given.Load(), refused.Load())
		}
	}
}

// TestRenewIsForOneself: the name in the certificate counts, whatever the request says.
func TestRenewIsForOneself(t *testing.T) {
	m := start(t, ca.Config{})
	c := member(t, m, "node1")
	csr, key, err := pki.NewRequest("node2")
	if err != nil {
		t.Fatal(err)
	}
	var cert securityapi.Certificate
	if _, err := securityapi.Call(t.Context(), client(t, c), http.MethodPost, m.URL+securityapi.PathRenew, securityapi.RenewRequest{CSR: string(csr)}, &cert); err != nil {
		t.Fatal(err)
	}
	if peer := pki.PeerOf(use(t, cert, key).Leaf()); peer.Name != "node1" || peer.Unit != pki.UnitAgent {
		t.Errorf("the new certificate is that of %s, expected agent node1", peer)
	}
	for _, id := range []identity.Identity{anonymous, {Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Admin}}}, {Kind: identity.Root}, {Kind: identity.Master, Name: "m"}} {
		if code, _ := m.As(id, http.MethodPost, securityapi.PathRenew, securityapi.RenewRequest{CSR: string(csr)}, nil); code != http.StatusForbidden {
			t.Errorf("renew as %s: %d, expected 403", id, code)
		}
	}
}

// TestRevoked: the connection is cut, no handshake and no renewal succeeds, not even before
// this netmaster has seen the revocation, and old tokens do not help.
func TestRevoked(t *testing.T) {
	m := start(t, ca.Config{})
	old, oldSecret := newToken(t, m, securityapi.TokenRequest{Uses: 3})
	c := member(t, m, "node1")
	keeping := &http.Client{Transport: &http.Transport{TLSClientConfig: pki.ClientConfig(c, pki.UnitMaster)}}
	defer keeping.CloseIdleConnections()
	ping := func() error { return get(keeping, m.URL+"/ping") }
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	m.Root(http.MethodDelete, securityapi.PathHosts+"/node1", nil, nil)
	eventually.True(t, "the host is cut", func() bool { return ping() != nil })

	csr, _ := request(t)
	id := identity.Identity{Kind: identity.Host, Name: "node1"} // as if the handshake had been before
	if code, text := m.As(id, http.MethodPost, securityapi.PathRenew, securityapi.RenewRequest{CSR: csr}, nil); code != http.StatusForbidden || !strings.Contains(text, "revoked") {
		t.Errorf("renew: %d %s", code, text)
	}
	if code, text := join(t, m, old, oldSecret, "node1"); code != http.StatusForbidden {
		t.Errorf("a token from before the revocation: %d %s", code, text)
	}
	if code, text := m.As(identity.Identity{Kind: identity.Root}, http.MethodPost, securityapi.PathJoin, securityapi.JoinRequest{Host: "node1", CSR: csr}, nil); code != http.StatusForbidden {
		t.Errorf("by the socket: %d %s", code, text)
	}
	again := member(t, m, "node1") // by a new token
	if err := get(client(t, again), m.URL+"/ping"); err != nil {
		t.Errorf("after joining again: %v", err)
	}
	if ping() == nil {
		t.Error("the revoked certificate counts again")
	}
}

// TestRevocationReachesOthers: also what was revoked before a netmaster started, and a store
// that forgets gives nothing back.
func TestRevocationReachesOthers(t *testing.T) {
	store := newStore(t)
	secret := []byte(strings.Repeat("s", ca.SecretMin))
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret}, store)
	second := catest.Start(t, catest.Port(t), ca.Config{Secret: secret, Join: []string{first.URL}}, store.Connect())
	c := member(t, first, "node1")
	if err := get(client(t, c), second.URL+"/ping"); err != nil {
		t.Fatal(err)
	}
	first.Root(http.MethodDelete, securityapi.PathHosts+"/node1", nil, nil)
	cut := func(m *catest.Master) func() bool {
		return func() bool { return get(client(t, c), m.URL+"/ping") != nil }
	}
	eventually.True(t, "the second netmaster cuts the host", cut(second))
	third := catest.Start(t, catest.Port(t), ca.Config{Secret: secret, Join: []string{first.URL}}, store.Connect())
	eventually.True(t, "a netmaster that starts later cuts the host", cut(third))
	removeAll(t, store, "/contiv.io/auth/hosts/")
	for range 20 {
		if !cut(second)() {
			t.Fatal("the revoked host is back after the store has lost its records")
		}
		time.Sleep(time.Millisecond)
	}
}

// reviews are the tokens that Kubernetes knows: account and node.
type reviews map[string][2]string

func (r reviews) Review(_ context.Context, token string) (account, node string, err error) {
	known, ok := r[token]
	if !ok {
		return "", "", errs.New(errs.Invalid, "unknown token")
	}
	return known[0], known[1], nil
}

func TestJoinByServiceAccount(t *testing.T) {
	m := start(t, ca.Config{ServiceAccount: "kube-system/contiv-netplugin", Reviewer: reviews{
		"good":     {"kube-system/contiv-netplugin", "node1"},
		"other":    {"default/app", "node1"},
		"detached": {"kube-system/contiv-netplugin", ""},
	}})
	ask := func(token, host string) (int, string) {
		csr, _ := request(t)
		return m.As(anonymous, http.MethodPost, securityapi.PathJoin, securityapi.JoinRequest{ServiceAccount: token, Host: host, CSR: csr}, nil)
	}
	for _, tt := range []struct {
		token, host string
		status      int
	}{
		{"good", "node1", 200}, {"good", "node1", 200}, {"good", "node2", 403}, {"other", "node1", 403}, {"detached", "node1", 403}, {"forged", "node1", 401},
	} {
		if code, text := ask(tt.token, tt.host); code != tt.status {
			t.Errorf("token %s for %s: %d %s, expected %d", tt.token, tt.host, code, text, tt.status)
		}
	}
	m.Root(http.MethodDelete, securityapi.PathHosts+"/node1", nil, nil)
	if code, text := ask("good", "node1"); code != http.StatusForbidden {
		t.Errorf("revoked host: %d %s, expected 403", code, text)
	}
}

// TestAdminOnly: nobody but administrators manages certificates.
func TestAdminOnly(t *testing.T) {
	m := start(t, ca.Config{})
	for _, path := range []string{
		"GET " + securityapi.PathStatus, "GET " + securityapi.PathTokens, "POST " + securityapi.PathTokens, "DELETE " + securityapi.PathTokens + "/x",
		"GET " + securityapi.PathHosts, "DELETE " + securityapi.PathHosts + "/x", "POST " + securityapi.PathRotate, "POST " + securityapi.PathIssue,
		"GET " + securityapi.PathMasterKeys,
	} {
		method, path, _ := strings.Cut(path, " ")
		for _, id := range []identity.Identity{
			anonymous,
			{Kind: identity.Host, Name: "node1"},
			{Kind: identity.Monitor, Name: "prometheus"},
			{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}, {Role: identity.Viewer}}},
		} {
			if code, text := m.As(id, method, path, struct{}{}, nil); code != http.StatusForbidden {
				t.Errorf("%s %s as %s: %d %s, expected 403", method, path, id, code, text)
			}
		}
	}
	// The authority's key is for netmasters, not for people.
	if code, _ := m.As(identity.Identity{Kind: identity.Root}, http.MethodGet, securityapi.PathMasterKeys, nil, nil); code != http.StatusForbidden {
		t.Errorf("the bundle as root: %d, expected 403", code)
	}
}
