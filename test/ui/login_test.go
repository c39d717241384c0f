package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/contiv/netplugin/netmaster/auth/oidctest"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
	"github.com/contiv/netplugin/utils/tlsport"
)

// logIn logs in with the form of the page.
func (p tab) logIn(user, password string) {
	p.Helper()
	p.open("/").sees("h1", "Log in to Contiv")
	p.types("input[name=user]", user)
	p.types("input[name=password]", password)
	p.click("button", "Log in")
}

// user makes a user with a role, and returns the password.
func (c cluster) user(name string, role ...string) string {
	c.Helper()
	out := strings.Fields(c.netctl("user", "create", "--random", name))
	c.netctl(append([]string{"role", "add", name}, role...)...)
	return out[len(out)-1]
}

// places are the views that the menu offers.
func (p tab) places() string {
	p.Helper()
	p.sees(".side a", "Overview")
	return eval[string](p, `[...document.querySelectorAll(".side a")].map((e) => e.innerText.trim()).join(" ")`)
}

// TestLogin: in a closed cluster the page asks who one is, and shows each role what it may see,
// with the buttons that it may use.
func TestLogin(t *testing.T) {
	c := cluster{labtest.Up(t, lab.Config{Hosts: 1, TLS: tlsport.Require}), t}
	c.netctl("tenant", "create", "blue")
	c.netctl("tenant", "create", "red")
	for _, tenant := range []string{"blue", "red"} {
		c.netctl("net", "create", "-t", tenant, "-s", "10.1.0.0/16", "-g", "10.1.0.254", tenant+"-net")
	}
	password := ""
	eventually.Succeeds(t, "netmaster has made the first password", func() error {
		text, err := os.ReadFile(filepath.Join(c.Masters()[0].File(lab.MasterTLSDir), "initial-admin-password"))
		password = strings.TrimSpace(string(text))
		return err
	})
	base := "https://" + gate(t, c.Lab, "host1")
	t.Run("admin", func(t *testing.T) { testAdmin(t, cluster{c.Lab, t}, browse(t, base), password) })
	t.Run("ops", func(t *testing.T) { testOps(t, cluster{c.Lab, t}, browse(t, base)) })
	t.Run("asleep", func(t *testing.T) { testAsleep(t, cluster{c.Lab, t}, browse(t, base)) })
	t.Run("OpenID Connect", func(t *testing.T) { testOIDC(t, cluster{c.Lab, t}, browse(t, base), password) })
	t.Run("viewer", func(t *testing.T) { testViewer(t, cluster{c.Lab, t}, browse(t, base)) })
}

func testAdmin(t *testing.T, c cluster, p tab, password string) {
	p.logIn("admin", "wrong")
	p.sees(".message.bad", "password")
	p.accessible(t, "login")
	p.types("input[name=password]", password)
	p.click("button", "Log in")
	if got, want := p.places(), "Overview Topology Flows Objects Policies Services Hosts Changes Audit Users"; got != want {
		t.Errorf("admin is offered %q, want %q", got, want)
	}
	if eval[bool](p, `location.href.includes("token") || !!localStorage.getItem("contiv-token") || document.cookie !== ""`) {
		t.Error("the token is where it does not belong")
	}
	p.open("/users").sees(".panel", "admin")
	p.types("input[name=username]", "form")
	p.types("input[name=password]", "a-long-password-1")
	p.click("form[aria-label='New user'] button", "Create")
	p.sees(".list b", "form")
	if out := c.netctl("user", "ls"); !strings.Contains(out, "form") {
		t.Errorf("netctl user ls: %s", out)
	}
	p.accessible(t, "users")
	p.types("form[aria-label='New token'] input[name=name]", "script")
	p.click("form[aria-label='New token'] button", "Create")
	p.sees(".message.good", "shown once")
	p.until("the token is shown", `document.querySelector(".token").innerText.length > 20`)
	p.open("/audit").sees(".table", "user admin", "LOGIN", "local_users")
	p.accessible(t, "audit")
	p.keep("audit")
	p.open("/changes")
	c.netctl("net", "create", "-t", "blue", "-s", "10.5.0.0/16", "by-root")
	p.sees(".changes", "blue:by-root", "by root")
	p.click("button", "Log out")
	p.sees("h1", "Log in to Contiv")
	if eval[bool](p, `sessionStorage.getItem("contiv-token") !== null`) {
		t.Error("the token is still there after logging out")
	}
}

func testOps(t *testing.T, c cluster, p tab) {
	p.logIn("jane", c.user("jane", "ops", "--tenant", "blue"))
	if got, want := p.places(), "Overview Topology Flows Objects Policies Services Changes Users"; got != want {
		t.Errorf("ops of a tenant is offered %q, want %q", got, want)
	}
	p.open("/objects/network").sees(".table", "blue-net")
	if shown := p.text(); strings.Contains(shown, "red") {
		t.Errorf("another tenant is shown:\n%s", shown)
	}
	p.sees(".head a", "New network")
	p.open("/objects/tenant").sees(".table", "blue")
	p.open("/objects/tenant/blue").sees(".detail h2", "blue")
	p.open("/objects/policy?new=1")
	p.fill(map[string]string{"tenantName": "blue", "policyName": "mine"})
	p.click("button", "Review")
	p.click("button", "Create")
	p.sees(".detail h2", "blue:mine")
	p.sees(".detail button", "Delete")
	p.open("/objects/policy?new=1&x=2")
	p.fill(map[string]string{"tenantName": "red", "policyName": "not-mine"})
	p.click("button", "Review")
	p.click("button", "Create")
	p.sees(".message.bad", "role ops of tenant red is needed")

	c.netctl("user", "rm", "jane") // while the page is open
	p.sees("h1", "Log in to Contiv")
	p.sees(".message.bad", "Your login has ended")
}

func testViewer(t *testing.T, c cluster, p tab) {
	p.logIn("vera", c.user("vera", "viewer"))
	if got, want := p.places(), "Overview Topology Flows Objects Policies Services Hosts Changes Users"; got != want {
		t.Errorf("viewer is offered %q, want %q", got, want)
	}
	p.open("/objects/network/red:red-net").sees(".detail", "10.1.0.0/16")
	p.sees(".table", "blue-net")
	if eval[bool](p, `[...document.querySelectorAll(".head a, .detail a, .detail button")].some((e) => /New|Edit|Delete/.test(e.innerText))`) {
		t.Error("a viewer is offered to change something")
	}
}

// testAsleep: rights that end while the page sleeps have ended when it wakes.
func testAsleep(_ *testing.T, c cluster, p tab) {
	p.logIn("kate", c.user("kate", "viewer", "--tenant", "blue"))
	p.open("/objects/network").sees(".table", "blue-net")
	p.sleep(func() { c.netctl("user", "rm", "kate") })
	p.sees("h1", "Log in to Contiv")
	p.sees(".message.bad", "Your login has ended")
}

// testOIDC: a login by a provider comes back to the view that was asked for; a link with
// somebody's token logs nobody in.
func testOIDC(t *testing.T, c cluster, p tab, password string) {
	redirect := p.base + "/api/v1/auth_proxy/oidc/callback/"
	issuer := oidctest.New(t, redirect)
	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	in, err := h.Listen("tcp", issuer.Address()) // the same address for netmaster as for the browser
	if err != nil {
		t.Fatal(err)
	}
	issuer.Serve(in)
	p.logIn("admin", password)
	p.sees(".side a", "Users")
	status := eval[int](p, fmt.Sprintf(`fetch("/api/v1/auth_proxy/oidc_configuration/", { method: "PUT", body: %q,
		headers: { "Content-Type": "application/json", "X-Auth-Token": sessionStorage.getItem("contiv-token") } }).then((r) => r.status)`, issuer.Configuration("page", redirect)))
	if status != 200 {
		t.Fatalf("configure OpenID Connect: status %d", status)
	}
	c.netctl("role", "add", "oidc:"+oidctest.Group, "viewer", "--tenant", "blue")
	p.click("button", "Log out")
	p.sees("h1", "Log in to Contiv")

	p.open("/objects/network")
	p.click("a.button", "OpenID Connect")
	p.until("the provider's form is there", `!!document.querySelector("input[name=username]")`)
	p.types("input[name=username]", oidctest.User)
	p.types("input[name=password]", oidctest.Password)
	p.click("button[type=submit], input[type=submit]", "")
	p.sees(".who", "jane", "viewer of blue")
	p.sees(".table", "blue-net")
	p.until("the token is not in the URL", `location.hash === "#/objects/network"`)
	p.click("button", "Log out")
	p.sees("h1", "Log in to Contiv")
	p.do(chromedp.Navigate(p.base + "/#token=stolen"))
	p.sees(".message.bad", "not begun in this tab")
	if eval[bool](p, `location.href.includes("stolen") || sessionStorage.getItem("contiv-token") !== null`) {
		t.Error("a token of a link is kept")
	}
}
