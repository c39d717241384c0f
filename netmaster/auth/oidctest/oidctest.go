// Package oidctest runs an OpenID Connect provider for tests.
package oidctest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/contiv/netplugin/utils/pki/pkitest"
)

// The user of an Issuer, who is in the group Group.
const (
	User     = "jane"
	Password = "jane-secret"
	Group    = "Blue; Team"
)

// Issuer is a provider on loopback, with the clients netctl (device flow) and page (browsers).
type Issuer struct {
	t      testing.TB
	server *httptest.Server
	URL    string // without a slash at the end
	CA     string // PEM
}

// New starts a provider until the test ends; redirect is where browsers return to.
func New(t testing.TB, redirect string) *Issuer {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(users, []byte(`{"jane":{"ID":"jane","Username":"jane","Password":"jane-secret"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := storage.StoreFromFile(users)
	if err != nil {
		t.Fatal(err)
	}
	Register(redirect)
	storage.RegisterClients(storage.DeviceClient("netctl", "netctl-secret"))
	pair := pkitest.For(t, "localhost")
	i := &Issuer{t: t, server: httptest.NewUnstartedServer(nil), CA: pair.CA}
	i.server.TLS = pair.TLS(t)
	i.server.StartTLS()
	i.URL = i.server.URL
	i.server.Config.Handler = exampleop.SetupServer(i.URL+"/", withGroups{storage.NewStorage(store)}, nil, false, op.WithAllowInsecure())
	t.Cleanup(i.server.Close)
	return i
}

// Register lets browsers return to a URL.
func Register(redirect string) {
	storage.RegisterClients(storage.WebClient("page", "page-secret", redirect))
}

// Address is where the provider listens.
func (i *Issuer) Address() string { return i.server.Listener.Addr().String() }

// Close ends the provider.
func (i *Issuer) Close() { i.server.Close() }

// Serve lets the provider answer at another listener as well, until the test ends.
func (i *Issuer) Serve(in net.Listener) {
	s := &http.Server{Handler: i.server.Config.Handler, TLSConfig: i.server.TLS.Clone()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.ServeTLS(in, "", "") // until Close
	}()
	i.t.Cleanup(func() {
		s.Close()
		<-ended
	})
}

// Configuration is what PUT oidc_configuration/ gets for a client.
func (i *Issuer) Configuration(client, redirect string) string {
	text, _ := json.Marshal(map[string]any{
		"issuer": i.URL + "/", "client_id": client, "client_secret": client + "-secret", "scopes": []string{"profile"}, "ca": i.CA, "redirect_url": redirect,
	})
	return string(text)
}

// withGroups is the storage of a provider whose users are in groups.
type withGroups struct{ *storage.Storage }

// SetUserinfoFromToken implements op.Storage.
func (s withGroups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	info.AppendClaims("groups", []string{Group, "watchers"})
	return s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}
