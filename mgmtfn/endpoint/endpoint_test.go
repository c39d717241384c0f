package endpoint

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// dotted are networks of two tenants whose ids are equal except for the position of the dot
// between network and tenant.
var (
	dotted  = state.NetworkRef{Tenant: "b.c", Network: "a"}
	swapped = state.NetworkRef{Tenant: "c", Network: "a.b"}
)

func spec(ref state.NetworkRef, name string) Spec {
	return Spec{Network: ref, Name: name, Port: drivers.Attachment{ContainerID: name}}
}

const nothing = "records [] ports []"

func TestCreateAndRemove(t *testing.T) {
	ref := state.NetworkRef{Tenant: "blue", Network: "net1", Group: "web"}
	c := newCluster(ref)
	m := c.manager(t)
	for range 2 { // the second time it is repeated
		got, err := m.Create(t.Context(), spec(ref, "c1"))
		if err != nil || got.Record.ID != "net1.blue-c1" || got.Record.ServiceName != "web" || got.Port.OVSName == "" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if got, want := c.left(), "records [net1.blue-c1] ports [net1.blue-c1]"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	found := m.Named("c1")["net1.blue-c1"]
	if found.Network != ref || found.Record == nil || found.Port == nil || found.Port.Tenant != "blue" || found.Port.Network != "net1" {
		t.Fatalf("found %+v, want it in %+v with record and port", found, ref)
	}
	for range 2 {
		if err := m.Remove(t.Context(), found); err != nil || c.left() != nothing {
			t.Fatalf("%v, left %s", err, c.left())
		}
	}
}

// TestNothingIsLeftOfAFailure: whichever part fails, the others are removed, and the error
// names it.
func TestNothingIsLeftOfAFailure(t *testing.T) {
	ref := state.NetworkRef{Tenant: "blue", Network: "net1"}
	broken := errors.New("no room for a port")
	for name, tt := range map[string]struct {
		prepare func(*cluster)
		ref     state.NetworkRef
		part    Part
		kind    errs.Kind
	}{
		"port":       {func(c *cluster) { c.FailAttach(broken) }, ref, PortPart, errs.KindOf(broken)},
		"no network": {func(*cluster) {}, state.NetworkRef{Tenant: "blue", Network: "net9"}, RecordPart, errs.NotFound},
		"elsewhere":  {func(c *cluster) { c.homes["net1.blue-c1"] = "host2" }, ref, RecordPart, errs.Exists},
		"netmaster":  {func(c *cluster) { c.down = errs.New(errs.Exhausted, "no address is left") }, ref, RecordPart, errs.Exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(ref)
			tt.prepare(c)
			_, err := c.manager(t).Create(t.Context(), spec(tt.ref, "c1"))
			var failure *CreateError
			if !errors.As(err, &failure) || failure.Part != tt.part || !errs.Is(err, tt.kind) || c.left() != nothing {
				t.Errorf("%v, left %s; want an error of part %d and kind %s, and nothing left", err, c.left(), tt.part, tt.kind)
			}
		})
	}
}

// TestEndpointOfAnotherHost: a creation that is rejected because another host has the
// endpoint does not delete it there.
func TestEndpointOfAnotherHost(t *testing.T) {
	ref := state.NetworkRef{Tenant: "blue", Network: "net1"}
	c := newCluster(ref)
	c.homes["net1.blue-c1"] = "host2"
	m := c.manager(t)
	if _, err := m.Create(t.Context(), spec(ref, "c1")); !errs.Is(err, errs.Exists) {
		t.Fatalf("%v, want an error of kind exists", err)
	}
	if want := []string{"create blue net1 c1"}; !slices.Equal(c.asked, want) || m.Queued() != 0 || c.left() != nothing {
		t.Errorf("netmaster was asked %q, %d deletions queued, left %s; want only to create", c.asked, m.Queued(), c.left())
	}
}

// TestCallerWhoseTimeIsOver: if netmaster was too slow, it is sent the deletion in the
// background, and the error names netmaster.
func TestCallerWhoseTimeIsOver(t *testing.T) {
	ref := state.NetworkRef{Tenant: "blue", Network: "net1"}
	c := newCluster() // the network is not known either
	m := c.manager(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.Create(ctx, spec(ref, "c1"))
	var failure *CreateError
	if !errors.As(err, &failure) || failure.Part != RecordPart || m.Queued() != 1 || len(c.asked) != 0 {
		t.Errorf("%v, %d queued, asked %v; want the record's error and its deletion queued", err, m.Queued(), c.asked)
	}
}

// TestQueuedDeletion: a deletion does not wait for a netmaster that is down, and while one
// is queued the next does not even try; both are delivered later, but not that of an
// endpoint which is wanted again.
func TestQueuedDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := state.NetworkRef{Tenant: "blue", Network: "net1"}
		c := newCluster(ref)
		m := c.manager(t)
		for _, name := range []string{"c1", "c2", "c3"} {
			if _, err := m.Create(t.Context(), spec(ref, name)); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := m.Share(t.Context())
		if short.Err() != nil {
			t.Error("no time for netmaster although nothing is queued")
		}
		cancel()
		c.with(func() { c.down = errs.New(errs.Unavailable, "no netmaster is the leader") })
		for _, name := range []string{"c1", "c2", "c3"} {
			if err := m.Remove(t.Context(), At(ref, name)); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel = m.Share(t.Context())
		if short.Err() == nil {
			t.Error("time for netmaster although deletions are queued")
		}
		cancel()
		if got := c.left(); got != "records [net1.blue-c1 net1.blue-c2 net1.blue-c3] ports []" || m.Queued() != 3 {
			t.Fatalf("left %s, %d queued; want no port and all deletions queued", got, m.Queued())
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = m.Run(ctx) }()
		time.Sleep(time.Minute)
		c.with(func() { c.down = nil })
		if _, err := m.Create(t.Context(), spec(ref, "c3")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(longestRetry)
		if got := c.left(); got != "records [net1.blue-c3] ports [net1.blue-c3]" || m.Queued() != 0 {
			t.Errorf("left %s, %d queued; want the one that is wanted again", got, m.Queued())
		}
		stop()
		synctest.Wait()
	})
}

// TestDotsInTheTenant: an id is never split. The record of the network contains its parts,
// and when it is gone the port does.
func TestDotsInTheTenant(t *testing.T) {
	if dotted.NetworkID() != swapped.NetworkID() {
		t.Fatal("these networks can be told apart by their ids")
	}
	for _, ref := range []state.NetworkRef{dotted, swapped} {
		for _, known := range []bool{true, false} {
			c := newCluster(ref)
			m := c.manager(t)
			if _, err := m.Create(t.Context(), spec(ref, "c1")); err != nil {
				t.Fatal(err)
			}
			if !known {
				c.with(func() { clear(c.networks) })
			}
			for _, e := range m.Named("c1") {
				if err := m.Remove(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			want := "delete " + ref.Tenant + " " + ref.Network + " c1"
			if c.left() != nothing || !slices.Contains(c.asked, want) {
				t.Errorf("%+v, its record is known: %t: left %s, netmaster was asked %q, want %q", ref, known, c.left(), c.asked, want)
			}
		}
	}
}

// TestPortOfAnEarlierVersion names no network: when the network's record is gone, so is the
// endpoint's, and only the port remains to be removed.
func TestPortOfAnEarlierVersion(t *testing.T) {
	c := newCluster()
	m := c.manager(t)
	if _, err := c.Attach(t.Context(), drivers.Attachment{EndpointID: state.EndpointID(dotted.NetworkID(), "c1"), ContainerID: "c1"}, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Named("c1") {
		if err := m.Remove(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if c.left() != nothing || len(c.asked) != 0 {
		t.Errorf("left %s, netmaster was asked %q; want nothing", c.left(), c.asked)
	}
}

// TestOrphans: endpoints without owner are removed after the grace period, those that find
// an owner stay, and failed removals are retried. The host's own endpoints are never
// orphans.
func TestOrphans(t *testing.T) {
	c := newCluster(dotted)
	m := c.manager(t)
	for _, name := range []string{"alive", "late", "gone", "stuck", "host1"} {
		if _, err := m.Create(t.Context(), spec(dotted, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Detach(t.Context(), state.EndpointID(dotted.NetworkID(), "host1")); err != nil { // the agent's own, without a container
		t.Fatal(err)
	}
	collector, now := NewCollector(m), time.Now()
	collector.now = func() time.Time { return now }
	owners := map[string]bool{"alive": true}
	rules := Rules{
		Alive: func(e Endpoint) bool { return owners[e.Name] }, Retry: time.Second,
		Wait: func(_ Endpoint, orphaned time.Duration) time.Duration { return time.Minute - orphaned },
	}
	if left, next := collector.Pass(t.Context(), rules); len(left) != 3 || next != time.Minute {
		t.Fatalf("%d orphans, the first in %s; want late, gone and stuck in a minute", len(left), next)
	}
	now = now.Add(time.Minute)
	owners["late"] = true
	c.FailDetach(errors.New("the switch is down"))
	if left, next := collector.Pass(t.Context(), rules); len(left) != 2 || next != time.Second {
		t.Fatalf("%d orphans, the first in %s; want gone and stuck in a second", len(left), next)
	}
	c.FailDetach(nil)
	delete(owners, "late")
	if left, next := collector.Pass(t.Context(), rules); len(left) != 1 || left[0].Name != "late" || next != time.Minute {
		t.Fatalf("orphans %+v, the first in %s; want late to get its minute again", left, next)
	}
	const want = "records [a.b.c-alive a.b.c-host1 a.b.c-late] ports [a.b.c-alive a.b.c-late]"
	if got := c.left(); got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}

// TestOrphanThatIsAttachedMeanwhile: after waiting for an endpoint's lock the collector
// checks again.
func TestOrphanThatIsAttachedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(dotted)
		m := c.manager(t)
		if _, err := m.Create(t.Context(), spec(dotted, "c1")); err != nil {
			t.Fatal(err)
		}
		release, err := m.Lock(t.Context(), "c1")
		if err != nil {
			t.Fatal(err)
		}
		attached := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			NewCollector(m).Pass(t.Context(), Rules{
				Alive: func(Endpoint) bool { return attached }, Wait: func(Endpoint, time.Duration) time.Duration { return 0 },
			})
		}()
		synctest.Wait()
		attached = true
		release()
		<-done
		if c.left() == nothing {
			t.Error("an endpoint was removed that has been attached")
		}
	})
}
