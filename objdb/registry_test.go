package objdb_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
)

// services waits until a watch delivers the expected instances.
func services(t *testing.T, ctx context.Context, w <-chan []objdb.ServiceInfo, want ...objdb.ServiceInfo) {
	t.Helper()
	var diff string
	for {
		select {
		case got := <-w:
			if diff = cmp.Diff(want, got); diff == "" || len(want)+len(got) == 0 {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the registry did not get there (-want +got):\n%s", diff)
		}
	}
}

func TestRegistry(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	w := objdb.WatchServices(ctx, connect(t, s), "netmaster")
	services(t, ctx, w)

	info := objdb.ServiceInfo{ServiceName: "netmaster", Role: objdb.RoleFollower, HostAddr: "10.0.0.1", Port: 9999}
	r := objdb.Register(ctx, s, info, nil)
	info.TTL = 10
	services(t, ctx, w, info)
	kv, err := s.Get(ctx, "/contiv.io/service/netmaster/10.0.0.1:9999")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ServiceName":"netmaster","Role":"follower","Version":"","TTL":10,"HostAddr":"10.0.0.1","Port":9999,"Hostname":""}`
	if got := string(kv.Value); got != want {
		t.Errorf("value %s, want %s", got, want)
	}

	r.SetRole(objdb.RoleLeader)
	info.Role = objdb.RoleLeader
	services(t, ctx, w, info)

	// Its lease ends (a partition): it registers again by itself.
	s.ExpireAll()
	services(t, ctx, w, info)

	agents := []objdb.ServiceInfo{
		{ServiceName: "netplugin", TTL: 10, HostAddr: "10.0.0.2", Port: 9002, Hostname: "host2"},
		{ServiceName: "netplugin", TTL: 10, HostAddr: "10.0.0.2", Port: 9003, Hostname: "host2"},
	}
	for _, a := range agents {
		objdb.Register(ctx, s, a, nil)
	}
	services(t, ctx, objdb.WatchServices(ctx, s, "netplugin"), agents...)

	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
	services(t, ctx, w)
}

// TestRegistryGarbage: unreadable entries are not instances.
func TestRegistryGarbage(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{
		objdb.Put("/contiv.io/service/x/1", []byte("{")), objdb.Put("/contiv.io/service/x/2", []byte("null")), objdb.Put("/contiv.io/service/x/3", nil),
	}}); err != nil {
		t.Fatal(err)
	}
	services(t, ctx, objdb.WatchServices(ctx, s, "x"))
}

// TestSuccessorKeepsItsEntry: a process that ends late does not remove the entry of its
// successor.
func TestSuccessorKeepsItsEntry(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	info := objdb.ServiceInfo{ServiceName: "netmaster", HostAddr: "10.0.0.1", Port: 9999, Version: "old"}
	w := objdb.WatchServices(ctx, s, "netmaster")
	old := objdb.Register(ctx, s, info, nil)
	info.TTL = 10
	services(t, ctx, w, info)
	info.Version = "new"
	objdb.Register(ctx, s, info, nil)
	services(t, ctx, w, info)
	if err := old.Close(ctx); err != nil {
		t.Error(err)
	}
	services(t, ctx, objdb.WatchServices(ctx, s, "netmaster"), info)
}
