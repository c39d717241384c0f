package contract

import (
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

func attachAgain(t *testing.T, env Env) {
	d := start(t, env)
	netns := env.Netns(t)
	first := attach(t, d, "net1.default-c1", netns)
	if again := attach(t, d, "net1.default-c1", netns); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	if !env.LinkExists(t, netns, "eth0") {
		t.Error("the container has no eth0")
	}
	if other := attach(t, d, "net1.default-c2", env.Netns(t)); other.OVSName == first.OVSName {
		t.Errorf("two endpoints share port %s", other.OVSName)
	}
	detach(t, d, "net1.default-c1")
	detach(t, d, "net1.default-c2")
}

func detachTwice(t *testing.T, env Env) {
	d := start(t, env)
	netns := env.Netns(t)
	attach(t, d, "net1.default-c1", netns)
	for range 3 {
		detach(t, d, "net1.default-c1")
	}
	if left := d.Attachments(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if env.LinkExists(t, netns, "eth0") {
		t.Error("the container still has eth0")
	}
}

func attachmentIsKept(t *testing.T, env Env) {
	d := start(t, env)
	netns := env.Netns(t)
	want := attachment("net1.default-c1", netns)
	want.Pod, want.PodUID, want.Config = "shop/web-0", "8392f6d1-9734-41f6-9745-706e2c59427b", "contiv-net"
	port, err := d.Attach(long(t), want, ofnet.VXLAN, 1)
	if err != nil {
		t.Fatal(err)
	}
	want.Port = port
	if got := d.Attachments(); len(got) != 1 || got[0] != want {
		t.Errorf("attachments %+v, expected %+v", got, want)
	}
	detach(t, d, "net1.default-c1")
}

func cannotAttach(t *testing.T, env Env) {
	d := start(t, env)
	netns := env.Netns(t)
	attach(t, d, "net1.default-c1", netns)
	for name, a := range map[string]drivers.Attachment{
		"an interface of that name is there": attachment("net1.default-c2", netns),
		"there is no such namespace":         attachment("net1.default-c2", netns+"x"),
	} {
		if port, err := d.Attach(long(t), a, ofnet.VXLAN, 1); err == nil {
			t.Errorf("%s: attached by %+v", name, port)
		}
		if left := d.Attachments(); len(left) != 1 {
			t.Errorf("%s: left: %+v", name, left)
		}
	}
	detach(t, d, "net1.default-c1")
	if links := env.Links(t); len(links) != 0 {
		t.Errorf("links left: %q", links)
	}
}

func manyAtOnce(t *testing.T, env Env) {
	d := start(t, env)
	const n = 8
	type result struct {
		port drivers.Port
		err  error
	}
	results := make(chan result)
	for i := range n {
		ep := Endpoint(i + 1)
		netns := env.Netns(t)
		d.Apply(ep)
		go func() {
			port, err := d.Attach(long(t), attachment(ep.ID, netns), ofnet.VXLAN, 1)
			if err == nil {
				err = d.Realised(long(t), ep.ID)
			}
			results <- result{port, err}
		}()
	}
	ports := map[string]bool{}
	for range n {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		ports[r.port.OVSName] = true
	}
	if len(ports) != n {
		t.Errorf("%d different ports for %d endpoints", len(ports), n)
	}
	for i := range n {
		detach(t, d, Endpoint(i+1).ID)
	}
}
