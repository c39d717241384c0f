package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/test/lab/labtest"
)

const upArg = "__up"

// TestMain lets this test program be the init of the hosts it makes and, with upArg
// and a configuration, a program that brings a lab up and can be killed at it.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == lab.InitArg:
		os.Exit(hostinit.Main())
	case len(os.Args) > 3 && os.Args[1] == upArg:
		c := lab.Config{}
		err := json.Unmarshal([]byte(os.Args[3]), &c)
		if err == nil {
			c.Dir = os.Args[2]
			_, err = lab.Up(context.Background(), c)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bare is a lab of hosts with Open vSwitch only, whose init is this test program.
func bare(t *testing.T, hosts int) lab.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return lab.Config{Bare: true, Hosts: hosts, Init: self, Bin: t.TempDir()}
}

func upBare(t *testing.T, hosts int) *lab.Lab {
	t.Helper()
	return labtest.UpFrom(t, bare(t, hosts))
}

// on runs a shell script on a host or in a container and returns what it prints.
func on(t *testing.T, l *lab.Lab, name, script string) string {
	t.Helper()
	out, err := l.Output(t.Context(), name, "sh", "-ec", script)
	if err != nil {
		t.Fatalf("on %s: %v\n%s", name, err, out)
	}
	return out
}
