package attachment

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func newAttacher(w *attachmenttest.Cluster) *Attacher {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return New(Config{HostLabel: "host1", Master: w, Agent: w, Ports: w, Log: log})
}

func container(id, netns string) Request {
	return Request{ContainerID: id, IfName: "eth0", Netns: netns, Network: state.NetworkRef{Network: "net1"}}
}

func TestDeleteWhileNetmasterIsDown(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	if _, err := a.Add(t.Context(), container("c1", netxtest.Namespace(t))); err != nil {
		t.Fatal(err)
	}
	w.Fail(attachmenttest.Delete, errs.New(errs.Unavailable, "no netmaster is the leader"))
	if err := a.Delete(t.Context(), "c1", "eth0"); err != nil {
		t.Fatalf("%v, expected success: the rest is done later", err)
	}
	if w.Counts() != "1 endpoints, 0 ports" {
		t.Fatalf("left %s", w.Counts())
	}
	w.Fail(attachmenttest.Delete, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.endpoints.Run(ctx) }()
	for w.Counts() != "0 endpoints, 0 ports" {
		runtime.Gosched()
	}
	cancel()
	<-done
}

// A runtime whose deadline has passed is not kept waiting by a netmaster that does not
// answer.
func TestAddWhoseTimeIsOver(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Fail(attachmenttest.Ready, ctx.Err())
	req := container("c1", netxtest.Namespace(t))
	if _, err := a.Add(ctx, req); err == nil {
		t.Fatal("it was attached")
	}
	if w.Counts() != "1 endpoints, 0 ports" || a.endpoints.Queued() != 1 {
		t.Fatalf("left %s, %d deletions to be told of; expected the endpoint, and its deletion", w.Counts(), a.endpoints.Queued())
	}
}

// pass has an attacher look for orphans, and returns the names of those that are still in
// their grace period.
func pass(t *testing.T, a *Attacher) (suspects []string) {
	t.Helper()
	left, next := a.collectOrphans(t.Context())
	for _, e := range left {
		suspects = append(suspects, e.Name)
	}
	if want := collectInterval; len(left) == 0 && next != want || len(left) > 0 && next > orphanGrace {
		t.Errorf("the next pass comes in %s with suspects %v", next, suspects)
	}
	return suspects
}

func TestOrphansAreRemoved(t *testing.T) {
	synctest.Test(t, testOrphansAreRemoved)
}

func testOrphansAreRemoved(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	netns := netxtest.Namespace(t)
	if _, err := a.Add(t.Context(), container("c1", netns)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateEndpoint(t.Context(), masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: "net1", ConfigEP: masterapi.ConfigEP{Container: "crashed", Host: "host1"},
	}); err != nil {
		t.Fatal(err)
	}
	if suspects := pass(t, a); w.Counts() != "2 endpoints, 1 ports" || !slices.Equal(suspects, []string{"crashed"}) {
		t.Fatalf("first pass: %s, suspects %v; expected to suspect only the endpoint without port", w.Counts(), suspects)
	}
	time.Sleep(orphanGrace)
	pass(t, a)
	if w.Counts() != "1 endpoints, 1 ports" {
		t.Fatalf("second pass: %s", w.Counts())
	}
	_ = unix.Unmount(netns, unix.MNT_DETACH)
	if err := os.Remove(netns); err != nil {
		t.Fatal(err)
	}
	pass(t, a)
	time.Sleep(orphanGrace)
	pass(t, a)
	if w.Counts() != "0 endpoints, 0 ports" {
		t.Fatalf("after the container has gone: %s", w.Counts())
	}
}

// A deletion waits for a switch that is restarting.
func TestDeleteWaits(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	a.cfg.Patience = time.Hour
	if _, err := a.Add(t.Context(), container("c1", netxtest.Namespace(t))); err != nil {
		t.Fatal(err)
	}
	w.Fail(attachmenttest.Ready, errs.New(errs.Unavailable, "the switch restarts"))
	done := make(chan error, 1)
	go func() { done <- a.Delete(t.Context(), "c1", "eth0") }()
	for asked := w.Asked(); w.Asked() < asked+3; {
		runtime.Gosched()
	}
	if w.Counts() != "1 endpoints, 1 ports" {
		t.Errorf("left %s while nothing can be seen", w.Counts())
	}
	w.Fail(attachmenttest.Ready, nil)
	if err := <-done; err != nil || w.Counts() != "0 endpoints, 0 ports" {
		t.Errorf("%v, left %s", err, w.Counts())
	}
}

// A container that moves to another network leaves nothing in the old one.
func TestAddAgainElsewhere(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	netns := netxtest.Namespace(t)
	if _, err := a.Add(t.Context(), container("c1", netns)); err != nil {
		t.Fatal(err)
	}
	w.Net.ID, w.Net.Name = "net2.default", "net2"
	there := container("c1", netns)
	there.Network.Network = "net2"
	if _, err := a.Add(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if list := w.Attachments(); w.Counts() != "1 endpoints, 1 ports" || list[0].EndpointID != "net2.default-c1" {
		t.Errorf("there are %s: %+v", w.Counts(), list)
	}
}

func TestGCIsAboutOneConfiguration(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	for id, config := range map[string]string{"one": "net-one", "other": "net-other", "unknown": ""} {
		req := container(id, netxtest.Namespace(t))
		req.Config = config
		if _, err := a.Add(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.GC(t.Context(), "net-one", []ID{{"unknown", "eth0"}}); err != nil || w.Counts() != "2 endpoints, 2 ports" {
		t.Errorf("%v, left %s, expected to lose the one of that configuration", err, w.Counts())
	}
	if err := a.GC(t.Context(), "", nil); err != nil || w.Counts() != "0 endpoints, 0 ports" {
		t.Errorf("%v, left %s, of a runtime that does not tell the configuration", err, w.Counts())
	}
}

func TestGCLeavesPortsOfOthers(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	for _, id := range []string{"keep", "drop"} {
		if _, err := a.Add(t.Context(), container(id, netxtest.Namespace(t))); err != nil {
			t.Fatal(err)
		}
	}
	w.Adopt(drivers.Attachment{EndpointID: "net1.default-engines", ContainerID: "engines"})
	if err := a.GC(t.Context(), "contiv-net", []ID{{"keep", "eth0"}}); err != nil {
		t.Fatal(err)
	}
	if w.Counts() != "1 endpoints, 2 ports" {
		t.Errorf("left %s, expected the kept one's and the port whose interface its runtime moves", w.Counts())
	}
}

// Interfaces of a container are attached and detached independently.
func TestTwoInterfaces(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	first := container("c1", netxtest.Namespace(t))
	second := first
	second.IfName = "net1"
	addresses := map[string]bool{}
	for _, req := range []Request{first, second} {
		res, err := a.Add(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		addresses[res.IPv4] = true
	}
	if w.Counts() != "2 endpoints, 2 ports" || len(addresses) != 2 {
		t.Fatalf("%s with addresses %v", w.Counts(), addresses)
	}
	if err := a.Delete(t.Context(), "c1", "net1"); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context(), first); err != nil || w.Counts() != "1 endpoints, 1 ports" {
		t.Errorf("the first interface after the second has gone: %v, %s", err, w.Counts())
	}
}

// Deletions of which a plugin has left a note are carried out as soon as possible, but not
// for a container that was attached since.
func TestNotedDeletions(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	a.cfg.Notes = filepath.Join(t.TempDir(), "deletions")
	note := func(id string) {
		if err := (cni.Note{ContainerID: id, IfName: "eth0"}).Leave(a.cfg.Notes); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"c1", "c2"} {
		if _, err := a.Add(t.Context(), container(id, netxtest.Namespace(t))); err != nil {
			t.Fatal(err)
		}
		note(id)
	}
	note("unknown")
	netns := netxtest.Namespace(t)
	note("c3")
	if _, err := a.Add(t.Context(), container("c3", netns)); err != nil {
		t.Fatal(err)
	}
	w.Fail(attachmenttest.Ready, errs.New(errs.Unavailable, "no switch"))
	a.readNotes(t.Context())
	if notes, err := cni.Notes(a.cfg.Notes); len(notes) != 3 || err != nil || w.Counts() != "3 endpoints, 3 ports" {
		t.Fatalf("while it cannot be done: %s, notes %v, %v", w.Counts(), notes, err)
	}
	w.Fail(attachmenttest.Ready, nil)
	a.readNotes(t.Context())
	if notes, err := cni.Notes(a.cfg.Notes); len(notes) != 0 || err != nil || w.Counts() != "1 endpoints, 1 ports" {
		t.Errorf("left %s, notes %v, %v; expected those of c3", w.Counts(), notes, err)
	}
}

// Before store and switch have been read, nobody knows what exists.
func TestDeleteBeforeThereIsAView(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	w.Fail(attachmenttest.Ready, errors.New("waiting for the store"))
	if err := a.Delete(t.Context(), "c1", "eth0"); err == nil || FailureOf(err).Code != cni.CodeTryLater {
		t.Errorf("error %v, expected one with code %d", err, cni.CodeTryLater)
	}
}

func TestPortsWhosePodIsGoneAreRemoved(t *testing.T) {
	synctest.Test(t, testPortsWhosePodIsGoneAreRemoved)
}

func testPortsWhosePodIsGoneAreRemoved(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	living, asked := map[string]bool{"here": true, "going": true}, 0
	var unanswered error
	a.cfg.Pods = func(context.Context) (map[string]bool, error) { asked++; return maps.Clone(living), unanswered }
	if _, err := a.Add(t.Context(), container("no-pod", netxtest.Namespace(t))); err != nil {
		t.Fatal(err)
	}
	if pass(t, a); asked != 0 {
		t.Error("the API server is asked for pods though there are none here")
	}
	for _, uid := range []string{"here", "going"} {
		req := container("c-"+uid, netxtest.Namespace(t))
		req.Pod = Pod{Namespace: "shop", Name: uid, UID: uid}
		if _, err := a.Add(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if suspects := pass(t, a); len(suspects) != 0 {
		t.Fatalf("suspects %v while all pods live", suspects)
	}
	delete(living, "going")
	unanswered = errs.New(errs.Unavailable, "no API server")
	if suspects := pass(t, a); len(suspects) != 0 {
		t.Fatalf("suspects %v without an answer of the API server", suspects)
	}
	unanswered = nil
	suspects := pass(t, a)
	if len(suspects) != 1 || w.Counts() != "3 endpoints, 3 ports" {
		t.Fatalf("suspects %v, %s; expected one, and its runtime to get time", suspects, w.Counts())
	}
	living["going"] = true
	time.Sleep(orphanGrace)
	if again := pass(t, a); len(again) != 0 || w.Counts() != "3 endpoints, 3 ports" {
		t.Fatalf("suspects %v, %s though the pod is there", again, w.Counts())
	}
	delete(living, "going")
	pass(t, a)
	time.Sleep(orphanGrace)
	pass(t, a)
	if w.Counts() != "2 endpoints, 2 ports" {
		t.Errorf("left %s, expected to lose the one whose pod is gone", w.Counts())
	}
}
