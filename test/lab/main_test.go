package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// Arguments of a program that brings a lab up, of a directory and a configuration, and
// can be killed at it: one that ends then, and one that stays, with the lab tied to it.
const (
	upArg   = "__up"
	holdArg = "__hold"
)

// TestMain lets this test program play the roles of lab.Play, upArg and holdArg.
func TestMain(m *testing.M) {
	if status, played := lab.Play(os.Args); played {
		os.Exit(status)
	}
	if len(os.Args) == 4 && (os.Args[1] == upArg || os.Args[1] == holdArg) {
		if err := bringUp(os.Args[2], os.Args[3], os.Args[1] == holdArg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func bringUp(dir, config string, hold bool) error {
	c := lab.Config{}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	c.Dir = dir
	if hold {
		if _, err := lab.Tie(c.Init, dir); err != nil {
			return err
		}
	}
	if _, err := lab.Up(context.Background(), c); err != nil || !hold {
		return err
	}
	fmt.Println("up")
	_, err := io.Copy(io.Discard, os.Stdin) // until somebody ends it
	return err
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
