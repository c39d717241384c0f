package consul_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/errs"
)

// secured is a server that asks for certificates and tokens.
type secured struct {
	p          *process
	good       consul.Config // may do everything
	restricted string        // a token for keys below /contiv.io/ and sessions
}

func newSecured(t *testing.T, ctx context.Context) *secured {
	t.Helper()
	const management = "6f1b4b1c-7d4c-4ad3-8c37-3a3d1f0f3c11"
	a := servertest.NewAuthority(t)
	a.Issue(t, "server", "server", time.Now().Add(time.Hour))
	a.Issue(t, "client", "client", time.Now().Add(time.Hour))
	p := newProcess(t)
	p.scheme = "https"
	p.extra = fmt.Sprintf(`
tls {
  https {
    ca_file = %q
    cert_file = %q
    key_file = %q
    verify_incoming = true
  }
}
acl {
  enabled = true
  default_policy = "deny"
  tokens { initial_management = %q }
}`, a.File("ca.pem"), a.File("server.pem"), a.File("server.key"), management)
	p.Start(t)

	s := &secured{p: p, good: consul.Config{
		Endpoints: []string{p.URL()}, Token: management, CA: a.File("ca.pem"), Cert: a.File("client.pem"), Key: a.File("client.key"),
	}}
	// The first request waits until there is a leader, which makes the token.
	for connect(t, s.good).Health(ctx) != nil {
		if ctx.Err() != nil {
			t.Fatal("the server does not answer")
		}
		time.Sleep(100 * time.Millisecond)
	}
	raw, err := api.NewClient(&api.Config{
		Address: p.URL(), Token: management,
		TLSConfig: api.TLSConfig{CAFile: s.good.CA, CertFile: s.good.Cert, KeyFile: s.good.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	policy, _, err := raw.ACL().PolicyCreate(&api.ACLPolicy{
		Name: "contiv", Rules: `key_prefix "contiv.io/" { policy = "write" } session_prefix "" { policy = "write" }`,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := raw.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.restricted = token.SecretID
	return s
}

func TestTLSAndTokens(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := newSecured(t, ctx)

	for name, change := range map[string]func(*consul.Config){
		"no certificate":    func(c *consul.Config) { c.Cert, c.Key = "", "" },
		"unknown authority": func(c *consul.Config) { c.CA = "" },
		"plain text":        func(c *consul.Config) { *c = consul.Config{Endpoints: []string{"http://127.0.0.1:" + server.p.http}} },
		"no token":          func(c *consul.Config) { c.Token = "" },
		"wrong token":       func(c *consul.Config) { c.Token = "11111111-2222-3333-4444-555555555555" },
	} {
		cfg := server.good
		change(&cfg)
		short, stop := context.WithTimeout(ctx, 2*time.Second)
		err := connect(t, cfg).Health(short)
		if err == nil {
			t.Errorf("%s: the server answers", name)
		} else if strings.Contains(err.Error(), "2222") {
			t.Errorf("%s: the token is in the error: %v", name, err)
		}
		stop()
	}

	cfg := server.good
	cfg.Token = server.restricted
	s := connect(t, cfg)
	// All that Contiv does it does below /contiv.io/, with this policy.
	lead, err := objdb.Campaign(ctx, s, "/contiv.io/lock/x", "me", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, objdb.Txn{If: []objdb.Cmp{lead.Fence()}, Then: []objdb.Op{objdb.Put("/contiv.io/a", nil), objdb.DeletePrefix("/contiv.io/b/")}}); err != nil {
		t.Error(err)
	}
	if err := lead.Resign(ctx); err != nil {
		t.Error(err)
	}

	// What it may not see must not look as if it did not exist.
	if _, err := connect(t, server.good).Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/other/a", nil)}}); err != nil {
		t.Fatal(err)
	}
	wantInvalid := func(what string, err error) {
		t.Helper()
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s without permission: %v, want an Invalid error", what, err)
		}
	}
	_, err = s.Get(ctx, "/other/a")
	wantInvalid("Get", err)
	_, _, err = s.List(ctx, "/other/")
	wantInvalid("List", err)
	_, err = s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/other/a", nil)}})
	wantInvalid("Commit", err)
	_, err = s.Commit(ctx, objdb.Txn{If: []objdb.Cmp{objdb.HasValue("/other/a", nil)}})
	wantInvalid("comparison", err)
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	watch := s.Watch(short, "/other/")
	for s.Health(ctx) == nil {
		if short.Err() != nil {
			t.Error("Health does not tell of a watch without permission")
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for b := range watch {
		t.Errorf("Watch without permission delivers %+v", b)
	}
	if err := s.Health(ctx); err != nil {
		t.Errorf("after the watch: %v", err)
	}
}

// TestGrantRead: a token of the policy reads what is listed and nothing else; taken away, the
// right is no deletion, and the watch goes on by itself when it is given back.
func TestGrantRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := newSecured(t, ctx)
	admin := connect(t, server.good)
	prefixes := []string{"/contiv.io/state/", "/contiv.io/global"}
	grant := func(prefixes []string, dry bool) (said string) {
		t.Helper()
		if err := admin.GrantRead(ctx, "contiv-agent", prefixes, dry, func(s string) { said += s }); err != nil {
			t.Fatal(err)
		}
		return said
	}
	for _, dry := range []bool{true, true, false} {
		if said := grant(prefixes, dry); !strings.HasPrefix(said, "create ACL policy contiv-agent") {
			t.Errorf("dry %t: %s", dry, said)
		}
	}
	if said := grant(prefixes, false); said != "" {
		t.Errorf("again: %s", said)
	}
	raw, err := api.NewClient(&api.Config{
		Address: server.p.URL(), Token: server.good.Token,
		TLSConfig: api.TLSConfig{CAFile: server.good.CA, CertFile: server.good.Cert, KeyFile: server.good.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := raw.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{Name: "contiv-agent"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		t.Helper()
		if _, err := admin.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("1"))}}); err != nil {
			t.Fatal(err)
		}
	}
	put("/contiv.io/state/a")
	put("/contiv.io/obj/a")
	cfg := server.good
	cfg.Token = token.SecretID
	agent := connect(t, cfg)
	watch := agent.Watch(ctx, "/contiv.io/state/")
	if b := <-watch; !b.Snapshot || len(b.Events) != 1 {
		t.Errorf("what it may read: %+v", b)
	}
	if err := agent.Health(ctx); err != nil {
		t.Errorf("health: %v", err)
	}
	_, read := agent.Get(ctx, "/contiv.io/obj/a")
	_, write := agent.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/contiv.io/state/a", nil)}})
	_, lease := agent.Grant(ctx, time.Minute)
	for name, err := range map[string]error{"read intent": read, "write": write, "session": lease} {
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, want an Invalid error", name, err)
		}
	}

	// undeleted takes what the watch delivers until something holds.
	undeleted := func(what string, holds func() bool) {
		t.Helper()
		for !holds() {
			select {
			case b, ok := <-watch:
				if !ok {
					t.Fatal(what + ": never")
				}
				for _, ev := range b.Events {
					if ev.Deleted {
						t.Errorf("%s: a deletion: %+v", what, b)
					}
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	grant(prefixes[1:], false)
	n := 0
	undeleted("Health tells that the right is gone", func() bool {
		n++
		put(fmt.Sprint("/contiv.io/state/", n)) // ends the query that is under way
		return agent.Health(ctx) != nil
	})
	grant(prefixes, false)
	undeleted("Health tells that the right is there again", func() bool { return agent.Health(ctx) == nil })
	put("/contiv.io/state/late")
	seen := false
	for !seen {
		b, ok := <-watch
		if !ok {
			t.Fatal("with the right again the watch delivers nothing")
		}
		for _, ev := range b.Events {
			seen = seen || ev.KV.Key == "/contiv.io/state/late"
			if ev.Deleted {
				t.Errorf("with the right again, a deletion: %+v", b)
			}
		}
	}
}
