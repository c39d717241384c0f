package etcd_test

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/errs"
)

// TestGrantRead: the role lets who has it read what is listed, and nothing else: no write, no
// lease that counts, no auth, no snapshot. Granting again changes nothing; what somebody has
// added goes.
func TestGrantRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := servertest.NewAuthority(t)
	for _, name := range []string{"server", "root", "agent"} {
		a.Issue(t, name, name, time.Now().Add(time.Hour))
	}
	p := newProcess(t, "--client-cert-auth", "--trusted-ca-file", a.File("ca.pem"), "--cert-file", a.File("server.pem"), "--key-file", a.File("server.key"))
	p.scheme = "https"
	p.Start(t)
	as := func(name string) *etcd.Store {
		return connect(t, etcd.Config{Endpoints: []string{p.URL()}, CA: a.File("ca.pem"), Cert: a.File(name + ".pem"), Key: a.File(name + ".key")})
	}
	prefixes := []string{"/c/state/", "/c/global"}
	var said []string
	grant := func(dry bool) string {
		t.Helper()
		said = nil
		if err := as("root").GrantRead(ctx, "agent", prefixes, dry, func(s string) { said = append(said, s) }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(said, "; ")
	}
	first := "create role agent; let role agent read /c/state/; let role agent read /c/global; create user agent without a password; give role agent to user agent"
	for _, dry := range []bool{true, true, false} {
		if got := grant(dry); got != first {
			t.Errorf("dry %t: %s", dry, got)
		}
	}
	if got := grant(false); got != "" {
		t.Errorf("again: %s", got)
	}
	raw := as("root").Raw()
	for _, do := range []func() error{
		func() error { _, err := raw.Put(ctx, "/c/state/a", "1"); return err },
		func() error { _, err := raw.Put(ctx, "/c/obj/a", "1"); return err },
		func() error {
			_, err := raw.RoleGrantPermission(ctx, "agent", "/c/obj/", "/c/obj0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error {
			_, err := raw.UserAddWithOptions(ctx, "root", "", &clientv3.UserAddOptions{NoPassword: true})
			return err
		},
		func() error { _, err := raw.RoleAdd(ctx, "root"); return err },
		func() error { _, err := raw.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := raw.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	agent := as("agent")
	if _, err := agent.Get(ctx, "/c/obj/a"); err != nil {
		t.Errorf("with a right too many: %v", err)
	}
	if got := grant(false); got != `take the right to "/c/obj/" from role agent` {
		t.Errorf("a right too many: %s", got)
	}
	if kv, err := agent.Get(ctx, "/c/state/a"); err != nil || string(kv.Value) != "1" {
		t.Errorf("what it may read: %s, %v", kv.Value, err)
	}
	if err := agent.Health(ctx); err != nil {
		t.Errorf("health: %v", err)
	}
	_, intent := agent.Get(ctx, "/c/obj/a")
	_, write := agent.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/c/state/a", nil)}})
	_, auth := agent.Raw().AuthDisable(ctx)
	_, user := agent.Raw().UserAdd(ctx, "me", "x")
	_, members := agent.Raw().MemberAdd(ctx, []string{"http://127.0.0.1:9"})
	for name, err := range map[string]error{"intent": intent, "write": write} {
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, want an Invalid error", name, err)
		}
	}
	for name, err := range map[string]error{"disable auth": auth, "add a user": user, "add a member": members} {
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v, want permission denied", name, err)
		}
	}
}
