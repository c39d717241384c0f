package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/objdb/memory"
)

// withGroups is the storage of a provider whose users are in groups.
type withGroups struct{ *storage.Storage }

func (s withGroups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	info.AppendClaims("groups", []string{"Blue; Team", "watchers"})
	return s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}

// issuer is an OpenID Connect provider of a test, with the user jane.
type issuer struct {
	t      *testing.T
	server *httptest.Server
	ca     string
}

// newIssuer starts a provider on loopback until the test ends.
func newIssuer(t *testing.T, redirect string) *issuer {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(users, []byte(`{"jane":{"ID":"jane","Username":"jane","Password":"jane-secret"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := storage.StoreFromFile(users)
	if err != nil {
		t.Fatal(err)
	}
	storage.RegisterClients(storage.WebClient("page", "page-secret", redirect), storage.DeviceClient("netctl", "netctl-secret"))
	i := &issuer{t: t, server: httptest.NewUnstartedServer(nil)}
	ca, cert, key := certificateFor(t, "localhost")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	i.ca = ca
	i.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	i.server.StartTLS()
	i.server.Config.Handler = exampleop.SetupServer(i.server.URL+"/", withGroups{storage.NewStorage(store)}, nil, false, op.WithAllowInsecure())
	t.Cleanup(i.server.Close)
	return i
}

// configuration is what PUT oidc_configuration/ gets for a client.
func (i *issuer) configuration(client, redirect string) string {
	text, _ := json.Marshal(map[string]any{
		"issuer": i.server.URL + "/", "client_id": client, "client_secret": client + "-secret", "scopes": []string{"profile"}, "ca": i.ca, "redirect_url": redirect,
	})
	return string(text)
}

// browser is a client that keeps cookies, and follows redirects to the provider only.
func (i *issuer) browser() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(i.ca))
	jar, err := cookiejar.New(nil)
	if err != nil {
		i.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if "https://"+r.URL.Host != i.server.URL {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// post sends a form as a person's browser does.
func (i *issuer) post(b *http.Client, path string, form url.Values) *http.Response {
	i.t.Helper()
	resp, err := b.PostForm(i.server.URL+path, form)
	if err != nil {
		i.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

const groupRoles = `{"principalName":"oidc:Blue; Team","role":"ops","tenantName":"blue"}`

// TestOIDCDevice: netctl's login by a browser on another device.
func TestOIDCDevice(t *testing.T) {
	i := newIssuer(t, "https://unused.example.com/")
	store := memory.New()
	sv := start(t, store, withSealer)
	sv.want(404, "POST", "oidc/device/", "", "")
	sv.want(201, "POST", "authorizations/", root, groupRoles)
	for _, bad := range []string{`{}`, `{"issuer":"http://plain.example.com","client_id":"x"}`, `{"issuer":"https://x","client_id":"x","ca":"x"}`, `{"issuer":"https://x"}`} {
		sv.want(400, "PUT", "oidc_configuration/", root, bad)
	}
	sv.want(200, "PUT", "oidc_configuration/", root, i.configuration("netctl", ""))
	if got := sv.want(200, "GET", "oidc_configuration/", root, ""); strings.Contains(got.body, "secret") || strings.Contains(dump(t, store), "netctl-secret") {
		t.Errorf("the client's secret is shown, or in the store: %s", got.body)
	}
	begin := func() (code, body string) {
		d := sv.want(200, "POST", "oidc/device/", "", "")
		return d.field(t, "user_code"), text(map[string]any{"device_code": d.field(t, "device_code")})
	}
	decide := func(code, action string) {
		b := i.browser()
		i.post(b, "/device/login", url.Values{"user_code": {code}, "username": {"jane"}, "password": {"jane-secret"}})
		i.post(b, "/device/confirm", url.Values{"action": {action}})
	}
	code, body := begin()
	if got := sv.want(400, "POST", "oidc/token/", "", body); got.field(t, "error") != "authorization_pending" {
		t.Errorf("before the user has agreed: %s", got.body)
	}
	decide(code, "allowed")
	token := sv.want(200, "POST", "oidc/token/", "", body).field(t, "token")
	if got := sv.grants(token); got != "ops:blue" {
		t.Errorf("jane may %q", got)
	}
	if who := sv.want(200, "GET", "whoami/", token, ""); who.field(t, "name") != "jane" || who.field(t, "how") != "oidc" {
		t.Errorf("whoami: %s", who.body)
	}
	code, body = begin()
	decide(code, "denied")
	sv.want(401, "POST", "oidc/token/", "", body)
	sv.want(401, "POST", "oidc/token/", "", `{"device_code":"made-up"}`)
	sv.want(204, "POST", "logout/", token, "")
	sv.want(400, "GET", "whoami/", token, "")

	i.server.Close()
	if got := sv.want(503, "POST", "oidc/device/", "", ""); !strings.Contains(got.body, i.server.URL) {
		t.Errorf("without the provider: %s", got.body)
	}
	sv.login("admin", sv.first)
}

// TestOIDCBrowser: a page's login, by another netmaster at the end than at the beginning.
func TestOIDCBrowser(t *testing.T) {
	const redirect = "http://localhost/api/v1/auth_proxy/oidc/callback/" // of a client in development mode
	i := newIssuer(t, redirect)
	store := memory.New()
	a, b := start(t, store, withSealer), start(t, store.Connect(), func(c *auth.Config) { c.Sealer = sealer{} })
	a.want(201, "POST", "authorizations/", root, groupRoles)
	a.want(400, "PUT", "oidc_configuration/", root, i.configuration("page", redirect)) // not https
	redirectTLS := strings.Replace(redirect, "http://", "https://", 1)
	storage.RegisterClients(storage.WebClient("page", "page-secret", redirectTLS))
	a.want(200, "PUT", "oidc_configuration/", root, i.configuration("page", redirectTLS))

	begun := a.call("GET", "oidc/login/", "", "")
	to, cookie := begun.header.Get("Location"), begun.header.Get("Set-Cookie")
	if begun.status != 303 || !strings.Contains(to, "code_challenge_method=S256") || !strings.Contains(to, "nonce=") {
		t.Fatalf("login: %d, %s", begun.status, to)
	}
	for _, want := range []string{"HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %s: want %s", cookie, want)
		}
	}
	back := i.logIn(to)
	cookie, _, _ = strings.Cut(cookie, ";")
	query := "oidc/callback/?" + back.RawQuery
	if got := b.call("GET", query, "", ""); got.status != 400 {
		t.Errorf("without the cookie: %d %s", got.status, got.body)
	}
	if got := b.call("GET", "oidc/callback/?state=other&code="+back.Query().Get("code"), "", "", "Cookie", cookie); got.status != 400 {
		t.Errorf("with another state: %d %s", got.status, got.body)
	}
	if got := b.call("GET", "whoami/", strings.TrimPrefix(cookie, "contiv-oidc="), ""); got.status != 400 {
		t.Errorf("the cookie as a token: %d %s", got.status, got.body)
	}
	ended := b.call("GET", query, "", "", "Cookie", cookie)
	token, ok := strings.CutPrefix(ended.header.Get("Location"), "/#token=")
	if ended.status != 303 || !ok {
		t.Fatalf("callback: %d %s %s", ended.status, ended.body, ended.header.Get("Location"))
	}
	if got := b.grants(token); got != "ops:blue" {
		t.Errorf("jane may %q", got)
	}
	if got := b.call("GET", query, "", "", "Cookie", cookie); got.status != 401 {
		t.Errorf("the same code again: %d %s", got.status, got.body)
	}
}

var requestID = regexp.MustCompile(`authRequestID=([^&]+)`)

// logIn follows a redirect to the provider, logs in there as jane, and returns where the
// provider sends the browser back to.
func (i *issuer) logIn(to string) *url.URL {
	i.t.Helper()
	b := i.browser()
	resp, err := b.Get(to)
	if err != nil {
		i.t.Fatal(err)
	}
	resp.Body.Close()
	m := requestID.FindStringSubmatch(resp.Request.URL.RawQuery)
	if m == nil {
		i.t.Fatalf("the provider shows no login: %d %s", resp.StatusCode, resp.Request.URL)
	}
	resp = i.post(b, "/login/username", url.Values{"username": {"jane"}, "password": {"jane-secret"}, "id": {m[1]}})
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		i.t.Fatalf("the provider does not send back: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	return back
}
