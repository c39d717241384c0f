package commands

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
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
			env.Setenv("NETMASTER", apitest.Start(tb, memory.New(), apitest.Config(apitest.Log(tb))))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"endpoint": createEndpoint,
			"status":   checkStatus,
		},
	})
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

// checkStatus is "status N COMMAND…": the command exits with that status.
func checkStatus(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; "$@"; got=$?; [ $got = $want ] || { echo "exit status $got, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	ts.Check(err)
}
