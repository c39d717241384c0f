package intent

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

const bgpSecret = "n3ighb0r-S3cret"

func bgpBody(password string) []byte {
	return []byte(`{"hostname":"host1","routerip":"50.1.1.2/24","as":"65002","neighbor":"50.1.1.200","neighbor-as":"500"` + password + `}`)
}

// leadWith leads over a store with keys or without.
func leadWith(t *testing.T, store objdb.Store, cfg Config) (e *Engine, stop func()) {
	t.Helper()
	cfg.Log, cfg.ClusterMode, cfg.FwdMode, cfg.Infra = quiet(), "test", "routing", "default"
	ctx, cancel := context.WithCancel(t.Context())
	l, err := intenttest.Lead(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = New(ctx, cfg, store, l); err != nil {
		t.Fatal(err)
	}
	return e, func() {
		cancel()
		<-e.Done()
		if err := l.Resign(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// dump is everything in a store.
func dump(t *testing.T, store objdb.Store) string {
	t.Helper()
	kvs, _, err := store.List(context.Background(), "/")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, kv := range kvs {
		out.WriteString(kv.Key + " " + string(kv.Value) + "\n")
	}
	return out.String()
}

func bgpCollection(e *Engine) Collection {
	all := e.Collections()
	return all[slices.IndexFunc(all, func(c Collection) bool { return c.Name() == "Bgps" })]
}

func agentRecord(t *testing.T, store objdb.Store) (rec state.Bgp) {
	t.Helper()
	kv, err := store.Get(context.Background(), state.BgpRoot+"host1")
	if err == nil {
		err = json.Unmarshal(kv.Value, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestBGPPassword follows a password from a cluster without keys to one with keys: in the
// first it is in the store as it is, in the second nowhere.
func TestBGPPassword(t *testing.T) {
	ctx, store := t.Context(), memory.New()
	put := func(e *Engine, password string) *contivmodel.Bgp {
		t.Helper()
		v, err := bgpCollection(e).Put(ctx, "host1", bgpBody(password))
		if err != nil {
			t.Fatal(err)
		}
		return v.(*contivmodel.Bgp)
	}
	secret := func(e *Engine, want string) {
		t.Helper()
		if got, err := e.BGPPassword("host1"); got != want || err != nil {
			t.Errorf("the agent is told %q, %v; want %q", got, err, want)
		}
	}
	e, stop := leadWith(t, store, Config{})
	if b := put(e, `,"password":"`+bgpSecret+`"`); b.Password != bgpSecret {
		t.Errorf("without keys the password is shown as %q", b.Password)
	}
	if strings.Count(dump(t, store), bgpSecret) != 2 {
		t.Error("without keys the password is not where agents and netmasters of such a cluster look for it")
	}
	stop()

	keys := []seal.Key{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}
	sealer := seal.New("bgp", func() []seal.Key { return keys })
	_, stop = leadWith(t, store, Config{Secrets: sealer, OpenState: true}) // agents cannot ask yet
	if text := dump(t, store); strings.Count(text, bgpSecret) != 1 || agentRecord(t, store).Password != bgpSecret {
		t.Errorf("with keys, and agents without:\n%s", text)
	}
	stop()

	e, stop = leadWith(t, store, Config{Secrets: sealer})
	defer func() { stop() }()
	hidden := func() {
		t.Helper()
		if text := dump(t, store); strings.Contains(text, bgpSecret) {
			t.Errorf("the store shows the password:\n%s", text)
		}
	}
	hidden()
	secret(e, bgpSecret)
	first := agentRecord(t, store).Secret
	if first == "" {
		t.Error("the agent is not told that there is a password")
	}
	for _, same := range []string{"", `,"password":""`, `,"password":"` + contivmodel.HiddenPassword + `"`} {
		if b := put(e, same); b.Password != contivmodel.HiddenPassword {
			t.Errorf("shown as %q", b.Password)
		}
		secret(e, bgpSecret)
		if now := agentRecord(t, store).Secret; now != first {
			t.Errorf("the name of the password has changed from %s to %s, but not the password", first, now)
		}
	}
	if v, err := bgpCollection(e).Get("host1"); err != nil || v.(*contivmodel.Bgp).Password != contivmodel.HiddenPassword {
		t.Errorf("GET shows %+v, %v", v, err)
	}
	put(e, `,"password":"another"`)
	secret(e, "another")
	if agentRecord(t, store).Secret == first {
		t.Error("another password has the same name")
	}
	sealed, _ := sealer.Seal([]byte("x"))
	for _, bad := range []string{contivmodel.HiddenPassword, sealed} {
		body := strings.ReplaceAll(string(bgpBody(`,"password":"`+bad+`"`)), "host1", "host2")
		if _, err := bgpCollection(e).Put(ctx, "host2", []byte(body)); err == nil {
			t.Errorf("%s is taken for a password", bad)
		}
	}
	keys = append([]seal.Key{{ID: "k2", Secret: bytes.Repeat([]byte{2}, 32)}}, keys...) // rotated
	secret(e, "another")
	put(e, `,"password":"`+bgpSecret+`"`)
	hidden()
	secret(e, bgpSecret)
}
