package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/test/eventually"
)

var monitor = map[string][]string{
	"Open_vSwitch": {"bridges", "ovs_version", "no_such_column"},
	"Bridge":       {"name", "ports", "external_ids", "datapath_type"},
	"Port":         {"name", "interfaces", "tag"},
	"Interface":    {"name", "ofport", "error", "options"},
}

// connect runs a client until the test ends.
func connect(t *testing.T, sw *ovstest.Switch, onChange func([]ovsdb.Change)) *ovsdb.Client {
	t.Helper()
	c := ovsdb.New(ovsdb.Config{Target: "unix:" + sw.DBSocket(), Monitor: monitor, OnChange: onChange})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(time.Minute))
	t.Cleanup(cancel)
	return ctx
}

func addBridge(t *testing.T, c *ovsdb.Client, name string) {
	t.Helper()
	_, err := c.Transact(soon(t),
		ovsdb.Insert("Interface", "i", ovsdb.Row{"name": name, "type": "internal"}),
		ovsdb.Insert("Port", "p", ovsdb.Row{"name": name, "interfaces": ovsdb.NamedUUID("i")}),
		ovsdb.Insert("Bridge", "b", ovsdb.Row{
			"name": name, "datapath_type": "netdev", "ports": ovsdb.NamedUUID("p"),
			"external_ids": ovsdb.StringMap(map[string]string{"k": "v", "round": "1"}),
		}),
		ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("bridges", ovsdb.NamedUUID("b"))))
	if err != nil {
		t.Fatal(err)
	}
}

func find(c *ovsdb.Client, table, name string) (id ovsdb.UUID, row ovsdb.Row, ok bool) {
	c.View(func(v ovsdb.View) { id, row, ok = v.Find(table, "name", name) })
	return id, row, ok
}

func TestTransactAndMonitor(t *testing.T) {
	sw := ovstest.Start(t)
	c := connect(t, sw, nil)
	if err := c.Wait(soon(t), func(v ovsdb.View) bool { return true }); err != nil {
		t.Fatal(err)
	}
	addBridge(t, c, "br1")
	err := c.Wait(soon(t), func(v ovsdb.View) bool { // the number comes by itself
		_, row, ok := v.Find("Interface", "name", "br1")
		n, has := row.Int("ofport")
		return ok && has && n == 65534
	})
	if err != nil {
		t.Fatal(err)
	}
	id, row, _ := find(c, "Bridge", "br1")
	if got := row.Map("external_ids"); got["k"] != "v" || got["round"] != "1" {
		t.Errorf("external_ids = %v", got)
	}
	// Maps and sets follow incremental updates.
	_, err = c.Transact(soon(t), ovsdb.Mutate("Bridge", ovsdb.ByUUID(id),
		ovsdb.DeleteFrom("external_ids", ovsdb.StringSet("round", "k")),
		ovsdb.InsertInto("external_ids", ovsdb.StringMap(map[string]string{"round": "2", "new": "x"}))))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Wait(soon(t), func(v ovsdb.View) bool {
		row, _ := v.Row("Bridge", id)
		got := row.Map("external_ids")
		return len(got) == 2 && got["round"] == "2" && got["new"] == "x"
	})
	if err != nil {
		_, row, _ = find(c, "Bridge", "br1")
		t.Fatalf("%v; external_ids = %v", err, row.Map("external_ids"))
	}
	ports := func() int { _, row, _ := find(c, "Bridge", "br1"); return len(row.UUIDs("ports")) }
	if got := ports(); got != 1 {
		t.Errorf("%d ports, expected the local one", got)
	}
	var added ovsdb.UUID
	res, err := c.Transact(soon(t),
		ovsdb.Insert("Interface", "i", ovsdb.Row{"name": "x1", "type": "internal"}),
		ovsdb.Insert("Port", "p", ovsdb.Row{"name": "x1", "interfaces": ovsdb.NamedUUID("i"), "tag": 7}),
		ovsdb.Mutate("Bridge", ovsdb.ByName("br1"), ovsdb.InsertInto("ports", ovsdb.NamedUUID("p"))))
	if err != nil {
		t.Fatal(err)
	}
	added = res[1].UUID
	if err := c.Wait(soon(t), func(v ovsdb.View) bool {
		row, ok := v.Row("Port", added)
		tag, _ := row.Int("tag")
		return ok && tag == 7
	}); err != nil {
		t.Fatal(err)
	}
	if got := ports(); got != 2 {
		t.Errorf("%d ports, expected 2", got)
	}
	if _, err := c.Transact(soon(t), ovsdb.Mutate("Bridge", ovsdb.ByName("br1"), ovsdb.DeleteFrom("ports", ovsdb.Set{added}))); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(soon(t), func(v ovsdb.View) bool { _, ok := v.Row("Port", added); return !ok }); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsNameTheOperation(t *testing.T) {
	sw := ovstest.Start(t)
	c := connect(t, sw, nil)
	if err := c.Wait(soon(t), func(ovsdb.View) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		ops  []ovsdb.Operation
		want string
	}{
		{"column", []ovsdb.Operation{ovsdb.Update("Bridge", nil, ovsdb.Row{"no_such": "x"})}, "operation 1 (update Bridge)"},
		{"second", []ovsdb.Operation{
			ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("external_ids", ovsdb.StringMap(map[string]string{"left": "behind"}))),
			ovsdb.Update("Port", nil, ovsdb.Row{"tag": 9999}),
		}, "operation 2 (update Port)"},
		{"commit", []ovsdb.Operation{
			ovsdb.Insert("Bridge", "a", ovsdb.Row{"name": "dup"}), ovsdb.Insert("Bridge", "b", ovsdb.Row{"name": "dup"}),
			ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("bridges", ovsdb.Set{ovsdb.NamedUUID("a"), ovsdb.NamedUUID("b")})),
		}, "commit"},
	} {
		_, err := c.Transact(soon(t), tc.ops...)
		var te *ovsdb.TransactError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, expected a TransactError with %q", tc.name, err, tc.want)
		}
	}
	if out := sw.Vsctl("get", "Open_vSwitch", ".", "external_ids"); strings.Contains(out, "left") {
		t.Errorf("a failed transaction left a part behind: %s", out)
	}
	if _, err := c.Transact(soon(t), ovsdb.Update("Bridge", nil, ovsdb.Row{"name": struct{}{}})); err == nil {
		t.Error("a value that OVSDB does not have was accepted")
	}
}

// After an outage the cache is the server's content again, and OnChange has told
// every difference.
func TestReconnect(t *testing.T) {
	sw := ovstest.Start(t)
	var mu sync.Mutex
	known := map[ovsdb.UUID]string{}
	c := connect(t, sw, func(changes []ovsdb.Change) {
		mu.Lock()
		defer mu.Unlock()
		for _, ch := range changes {
			if ch.Table != "Bridge" {
				continue
			}
			if ch.New == nil {
				delete(known, ch.UUID)
			} else {
				known[ch.UUID] = ch.New.String("name")
			}
		}
	})
	if err := c.Wait(soon(t), func(ovsdb.View) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		addBridge(t, c, fmt.Sprintf("br%d", i))
	}
	sw.Restart(syscall.SIGKILL)
	sw.Vsctl("--no-wait", "del-br", "br0")
	sw.Vsctl("--no-wait", "add-br", "br9", "--", "set", "bridge", "br9", "datapath_type=netdev")
	err := c.Wait(soon(t), func(v ovsdb.View) bool {
		_, _, gone := v.Find("Bridge", "name", "br0")
		_, _, there := v.Find("Bridge", "name", "br9")
		return !gone && there
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connected(); err != nil {
		t.Error(err)
	}
	c.View(func(v ovsdb.View) {
		mu.Lock()
		defer mu.Unlock()
		v.Each("Bridge", func(id ovsdb.UUID, row ovsdb.Row) {
			if known[id] != row.String("name") {
				t.Errorf("bridge %s: told %q", row.String("name"), known[id])
			}
			delete(known, id)
		})
		if len(known) > 0 {
			t.Errorf("told of bridges that are gone: %v", known)
		}
	})
}

func TestNotConnected(t *testing.T) {
	c := ovsdb.New(ovsdb.Config{Target: "unix:" + t.TempDir() + "/nobody.sock"})
	if _, err := c.Transact(t.Context()); !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("error %v, expected ErrNotConnected", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	if err := c.Wait(ctx, func(ovsdb.View) bool { return true }); err == nil || !strings.Contains(err.Error(), "nobody.sock") {
		t.Errorf("error %v, expected one that says what is missing", err)
	}
	<-done
}
