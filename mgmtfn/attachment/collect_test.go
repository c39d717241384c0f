package attachment

import (
	"context"
	"os"
	"runtime"
	"testing"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func newAttacher(w *attachmenttest.World) *Attacher {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return New(Config{HostLabel: "host1", Master: w, Agent: w, Ports: w, Log: log})
}

func container(id, netns string) Request {
	return Request{ContainerID: id, IfName: "eth0", Netns: netns, Place: Place{Network: "net1"}}
}

func TestDeleteWhileNetmasterIsAway(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	if _, err := a.Add(t.Context(), container("c1", netxtest.Namespace(t))); err != nil {
		t.Fatal(err)
	}
	w.Fail(attachmenttest.Delete, errs.New(errs.Unavailable, "no netmaster leads"))
	if err := a.Delete(t.Context(), "c1", "eth0"); err != nil {
		t.Fatalf("%v, expected success: the rest is done later", err)
	}
	if w.Counts() != "1 endpoints, 0 ports" {
		t.Fatalf("left %s", w.Counts())
	}
	w.Fail(attachmenttest.Delete, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.pending.Run(ctx) }()
	for w.Counts() != "0 endpoints, 0 ports" {
		runtime.Gosched()
	}
	cancel()
	<-done
}

func TestCollectRemovesLeftOvers(t *testing.T) {
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
	suspects := a.collectOnce(t.Context(), nil)
	if w.Counts() != "2 endpoints, 1 ports" || !suspects["net1.default-crashed"] || len(suspects) != 1 {
		t.Fatalf("first pass: %s, suspects %v; expected to suspect only the endpoint without port", w.Counts(), suspects)
	}
	suspects = a.collectOnce(t.Context(), suspects)
	if w.Counts() != "1 endpoints, 1 ports" {
		t.Fatalf("second pass: %s", w.Counts())
	}
	_ = unix.Unmount(netns, unix.MNT_DETACH)
	if err := os.Remove(netns); err != nil {
		t.Fatal(err)
	}
	suspects = a.collectOnce(t.Context(), suspects)
	a.collectOnce(t.Context(), suspects)
	if w.Counts() != "0 endpoints, 0 ports" {
		t.Fatalf("after the container has gone: %s", w.Counts())
	}
}

// A container that belongs somewhere else than before keeps nothing where it was.
func TestAddAgainElsewhere(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	netns := netxtest.Namespace(t)
	if _, err := a.Add(t.Context(), container("c1", netns)); err != nil {
		t.Fatal(err)
	}
	w.Net.ID, w.Net.Name = "net2.default", "net2"
	there := container("c1", netns)
	there.Place.Network = "net2"
	if _, err := a.Add(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if list := w.Attachments(); w.Counts() != "1 endpoints, 1 ports" || list[0].EndpointID != "net2.default-c1" {
		t.Errorf("there are %s: %+v", w.Counts(), list)
	}
}

func TestKeepLeavesPortsOfOthers(t *testing.T) {
	w := attachmenttest.New(t)
	a := newAttacher(w)
	for _, id := range []string{"keep", "drop"} {
		if _, err := a.Add(t.Context(), container(id, netxtest.Namespace(t))); err != nil {
			t.Fatal(err)
		}
	}
	w.Adopt(drivers.Attachment{EndpointID: "net1.default-engines", ContainerID: "engines"})
	if err := a.Keep(t.Context(), []ID{{"keep", "eth0"}}); err != nil {
		t.Fatal(err)
	}
	if w.Counts() != "1 endpoints, 2 ports" {
		t.Errorf("left %s, expected the kept one's and the port whose interface its runtime moves", w.Counts())
	}
}
