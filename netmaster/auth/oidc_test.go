package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/auth/oidctest"
	"github.com/contiv/netplugin/objdb/memory"
)

const groupRoles = `{"principalName":"oidc:Blue; Team","role":"ops","tenantName":"blue"}`

// TestOIDCDevice: netctl's login by a browser on another device.
func TestOIDCDevice(t *testing.T) {
	i := oidctest.New(t, "https://unused.example.com/")
	store := memory.New()
	sv := start(t, store, withSealer)
	sv.want(404, "POST", "oidc/device/", "", "")
	if got := sv.want(200, "GET", "oidc/", "", ""); got.body != `{"browser":false}` {
		t.Errorf("the page is told %s", got.body)
	}
	sv.want(201, "POST", "authorizations/", root, groupRoles)
	for _, bad := range []string{`{}`, `{"issuer":"http://plain.example.com","client_id":"x"}`, `{"issuer":"https://x","client_id":"x","ca":"x"}`, `{"issuer":"https://x"}`} {
		sv.want(400, "PUT", "oidc_configuration/", root, bad)
	}
	sv.want(200, "PUT", "oidc_configuration/", root, i.Configuration("netctl", ""))
	if got := sv.want(200, "GET", "oidc_configuration/", root, ""); strings.Contains(got.body, "secret") || strings.Contains(dump(t, store), "netctl-secret") {
		t.Errorf("the client's secret is shown, or in the store: %s", got.body)
	}
	begin := func() (code, body string) {
		d := sv.want(200, "POST", "oidc/device/", "", "")
		return d.field(t, "user_code"), text(map[string]any{"device_code": d.field(t, "device_code")})
	}
	decide := func(code, action string) {
		b := browser(t, i)
		post(t, i, b, "/device/login", url.Values{"user_code": {code}, "username": {"jane"}, "password": {"jane-secret"}})
		post(t, i, b, "/device/confirm", url.Values{"action": {action}})
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

	i.Close()
	if got := sv.want(503, "POST", "oidc/device/", "", ""); !strings.Contains(got.body, i.URL) {
		t.Errorf("without the provider: %s", got.body)
	}
	sv.login("admin", sv.first)
}

// TestOIDCBrowser: a page's login, by another netmaster at the end than at the beginning.
func TestOIDCBrowser(t *testing.T) {
	const redirect = "http://localhost/api/v1/auth_proxy/oidc/callback/" // of a client in development mode
	i := oidctest.New(t, redirect)
	store := memory.New()
	a, b := start(t, store, withSealer), start(t, store.Connect(), func(c *auth.Config) { c.Sealer = sealer{} })
	a.want(201, "POST", "authorizations/", root, groupRoles)
	a.want(400, "PUT", "oidc_configuration/", root, i.Configuration("page", redirect)) // not https
	redirectTLS := strings.Replace(redirect, "http://", "https://", 1)
	oidctest.Register(redirectTLS)
	a.want(200, "PUT", "oidc_configuration/", root, i.Configuration("page", redirectTLS))

	if got := a.want(200, "GET", "oidc/", "", ""); got.body != `{"browser":true}` {
		t.Errorf("the page is told %s", got.body)
	}
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
	back := logIn(t, i, to)
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
	// A browser shows what is wrong on the page.
	failed := b.call("GET", query, "", "", "Cookie", cookie, "Accept", "text/html,*/*;q=0.8")
	if said, err := url.QueryUnescape(failed.header.Get("Location")); failed.status != 303 || err != nil || !strings.HasPrefix(said, "/#login_error=the OIDC provider") {
		t.Errorf("the same code again, in a browser: %d %s", failed.status, said)
	}
}

var requestID = regexp.MustCompile(`authRequestID=([^&]+)`)

// logIn follows a redirect to the provider, logs in there as jane, and returns where the
// provider sends the browser back to.
func logIn(t *testing.T, i *oidctest.Issuer, to string) *url.URL {
	t.Helper()
	b := browser(t, i)
	resp, err := b.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	m := requestID.FindStringSubmatch(resp.Request.URL.RawQuery)
	if m == nil {
		t.Fatalf("the provider shows no login: %d %s", resp.StatusCode, resp.Request.URL)
	}
	resp = post(t, i, b, "/login/username", url.Values{"username": {"jane"}, "password": {"jane-secret"}, "id": {m[1]}})
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the provider does not send back: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	return back
}

// browser is a client that keeps cookies, and follows redirects to the provider only.
func browser(t *testing.T, i *oidctest.Issuer) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(i.CA))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if "https://"+r.URL.Host != i.URL {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// post sends a form as a person's browser does.
func post(t *testing.T, i *oidctest.Issuer, b *http.Client, path string, form url.Values) *http.Response {
	t.Helper()
	resp, err := b.PostForm(i.URL+path, form)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}
