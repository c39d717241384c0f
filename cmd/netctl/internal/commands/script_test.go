package commands

import (
	"context"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/state/securityapi"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"netctl": func() { os.Exit(Run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts plays sessions of netctl, each against a netmaster of its own. What a
// script sees is what a user sees: stdout, stderr and exit status.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			tb := env.T().(testing.TB)
			h := &hosts{ctx: tb.Context(), store: memory.New(), members: cluster.New("127.0.0.1")}
			go h.members.Follow(h.ctx, h.store)
			cfg := apitest.Config(apitest.Log(tb))
			cfg.Members = h.members
			env.Setenv("NETMASTER", withAuthority(tb, apitest.Start(tb, h.store, cfg), h.store))
			env.Values["hosts"] = h
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"endpoint": createEndpoint,
			"host":     reportHost,
			"status":   checkStatus,
		},
	})
}

// withAuthority serves the calls about certificates before what a netmaster serves, and
// returns the URL of both. Who asks is an administrator.
func withAuthority(tb testing.TB, netmaster string, store objdb.Store) string {
	log, _ := catest.Log()
	authority, err := ca.Open(tb.Context(), ca.Config{Dir: tb.TempDir(), Name: "10.1.1.1:9999", Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	authority.SetStore(store)
	target, err := url.Parse(netmaster)
	if err != nil {
		tb.Fatal(err)
	}
	rest := httputil.NewSingleHostReverseProxy(target)
	rest.FlushInterval = -1
	rest.ErrorLog = stdlog.New(io.Discard, "", 0)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, securityapi.Prefix) {
			admin := identity.Identity{Kind: identity.User, Name: "admin", Grants: []identity.Grant{{Role: identity.Admin}}}
			authority.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), admin)))
			return
		}
		rest.ServeHTTP(w, r)
	}))
	tb.Cleanup(s.Close)
	return s.URL
}

// createEndpoint is "endpoint NETWORK GROUP CONTAINER": what an agent would ask for.
// The group may be "-".
func createEndpoint(ts *testscript.TestScript, _ bool, args []string) {
	c, err := client.New(client.Config{URLs: []string{ts.Getenv("NETMASTER")}})
	ts.Check(err)
	defer c.Close()
	group := args[1]
	if group == "-" {
		group = ""
	}
	_, _, err = c.CreateEndpoint(context.Background(), masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: args[0], EPCommonName: args[2] + "-name",
		ConfigEP: masterapi.ConfigEP{Container: args[2], Host: "host1", ServiceName: group},
	})
	ts.Check(err)
}

// hosts is where the hosts of a script live.
type hosts struct {
	ctx     context.Context
	store   *memory.Store
	members *cluster.Members
}

// reportHost is "host NAME REVISION [REASON]": the host is registered, and says that it has
// applied everything up to that revision, and what is amiss.
func reportHost(ts *testscript.TestScript, _ bool, args []string) {
	h := ts.Value("hosts").(*hosts)
	revision, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	objdb.Register(h.ctx, h.store, objdb.ServiceInfo{
		ServiceName: clusterapi.AgentService, HostAddr: "127.0.0.1", Port: clusterapi.AgentVXLANPort + len(h.members.Hosts()), Hostname: args[0],
	}, nil)
	_, err = h.members.Report(clusterapi.Report{
		Host: args[0], Instance: time.Now().UnixNano(), Version: "1.2", VTEP: "10.9.0.2", Revision: revision, Settings: revision, Flows: 62, Reasons: args[2:],
	})
	ts.Check(err)
	for {
		changed := h.members.Changed()
		if agents, _ := h.members.Agents(); agents[args[0]] != "" {
			return
		}
		<-changed
	}
}

// checkStatus is "status N COMMAND…": the command exits with that status.
func checkStatus(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; "$@"; got=$?; [ $got = $want ] || { echo "exit status $got, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	ts.Check(err)
}
