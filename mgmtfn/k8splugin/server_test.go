package k8splugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// world is netmaster, agent and driver in one: endpoints are kept in a map, ports are
// real veth pairs whose names are unlike those of a real agent.
type world struct {
	mu        sync.Mutex
	network   drivers.Network
	endpoints map[string]state.Endpoint
	ports     map[string]drivers.Attachment
	next      int

	createErr, deleteErr, attachErr, realiseErr error
}

func newWorld(t *testing.T) *world {
	w := &world{
		network: drivers.Network{
			ID: "net1.default", Tenant: "default", Name: "net1", Encap: ofnet.VXLAN,
			Subnet4: netip.MustParsePrefix("10.1.1.0/24"), Gateway4: netip.MustParseAddr("10.1.1.254"),
			Subnet6: netip.MustParsePrefix("2001:db8::/100"),
		},
		endpoints: map[string]state.Endpoint{}, ports: map[string]drivers.Attachment{},
	}
	t.Cleanup(func() {
		for id := range w.ports {
			_ = w.Detach(context.Background(), id)
		}
	})
	return w
}

func (w *world) CreateEndpoint(_ context.Context, req masterapi.CreateEndpointRequest) (state.Endpoint, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.createErr != nil {
		return state.Endpoint{}, w.createErr
	}
	id := state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.ConfigEP.Container)
	if ep, ok := w.endpoints[id]; ok {
		return ep, nil
	}
	w.next++
	ep := state.Endpoint{
		ID: id, NetID: state.NetworkID(req.NetworkName, req.TenantName), EndpointID: req.ConfigEP.Container, HomingHost: req.ConfigEP.Host,
		IPAddress: fmt.Sprintf("10.1.1.%d", w.next), IPv6Address: fmt.Sprintf("2001:db8::%d", w.next), MacAddress: fmt.Sprintf("02:02:0a:01:01:%02x", w.next),
	}
	w.endpoints[id] = ep
	return ep, nil
}

func (w *world) DeleteEndpoint(_ context.Context, req masterapi.DeleteEndpointRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deleteErr != nil {
		return w.deleteErr
	}
	delete(w.endpoints, state.EndpointID(state.NetworkID(req.NetworkName, req.TenantName), req.EndpointID))
	return nil
}

func (w *world) Network(_ context.Context, id string) (drivers.Network, error) {
	if id != w.network.ID {
		return drivers.Network{}, errs.New(errs.NotFound, "network %s is not known on this host", id)
	}
	return w.network, nil
}

func (w *world) KnownNetwork(id string) (drivers.Network, bool) { return w.network, id == w.network.ID }

func (w *world) LocalEndpoints() []state.Endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []state.Endpoint
	for _, ep := range w.endpoints {
		out = append(out, ep)
	}
	return out
}

func (w *world) PortsChanged() {}
func (w *world) Ready() error  { return w.realiseErr }

func (w *world) Attach(_ context.Context, a drivers.Attachment, _ ofnet.Encap, _ uint16) (drivers.Port, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attachErr != nil {
		return drivers.Port{}, w.attachErr
	}
	if have, ok := w.ports[a.EndpointID]; ok {
		return have.Port, nil
	}
	a.Port = drivers.Port{OVSName: fmt.Sprintf("ts%d-%d", len(w.ports), os.Getpid()), MTU: 1450}
	host, err := ns.GetCurrentNS()
	if err != nil {
		return drivers.Port{}, err
	}
	defer host.Close()
	err = ns.WithNetNSPath(a.Netns, func(ns.NetNS) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = a.IfName, 1450
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: a.Port.OVSName, PeerNamespace: netlink.NsFd(int(host.Fd()))})
	})
	if err != nil {
		return drivers.Port{}, err
	}
	w.ports[a.EndpointID] = a
	return a.Port, nil
}

func (w *world) Detach(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.ports[id]
	if !ok {
		return nil
	}
	delete(w.ports, id)
	if link, err := netlink.LinkByName(a.Port.OVSName); err == nil {
		return netlink.LinkDel(link)
	}
	return nil
}

func (w *world) Attachments() []drivers.Attachment {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []drivers.Attachment
	for _, a := range w.ports {
		out = append(out, a)
	}
	return out
}

func (w *world) Realised(context.Context, string) error { return w.realiseErr }

func (w *world) counts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d endpoints, %d ports", len(w.endpoints), len(w.ports))
}

func (w *world) server() *Server {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return NewServer(Config{HostLabel: "host1", Master: w, Agent: w, Ports: w, Log: log})
}

func post(t *testing.T, s *Server, path string, body any) (int, cniapi.PodReply) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(raw))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	var reply cniapi.PodReply
	if err := json.Unmarshal(rec.Body.Bytes(), &reply); err != nil {
		t.Fatalf("body %q: %v", rec.Body, err)
	}
	return rec.Code, reply
}

func podRequest(netns string) cniapi.PodRequest {
	return cniapi.PodRequest{ContainerID: "c1", Netns: netns, IfName: "eth0", Name: "pod1", Tenant: "default", Network: "net1"}
}

func TestAddConfiguresTheContainer(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	netns := netxtest.Namespace(t)
	code, reply := post(t, s, cniapi.PathAddPod, podRequest(netns))
	if code != http.StatusOK || reply.IPAddress != "10.1.1.1/24" || reply.IPv6Address != "2001:db8::1/100" || reply.Gateway != "10.1.1.254" || reply.MTU != 1450 || reply.EndpointID != "c1" {
		t.Fatalf("%d %+v", code, reply)
	}
	inside, err := ns.GetNS(netns)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	err = inside.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if got := link.Attrs().HardwareAddr.String(); got != "02:02:0a:01:01:01" {
			t.Errorf("mac %s", got)
		}
		routes, err := netlink.RouteList(link, netlink.FAMILY_ALL)
		text := fmt.Sprint(routes)
		// IPv4 has a gateway; IPv6 has none and goes through the link's router.
		if !strings.Contains(text, "10.1.1.254") || !strings.Contains(text, "fe80::1") {
			t.Errorf("routes %s", text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, again := post(t, s, cniapi.PathAddPod, podRequest(netns)); code != http.StatusOK || again.IPAddress != reply.IPAddress || again.HostIntf != reply.HostIntf {
		t.Errorf("ADD again: %d %+v, expected the first answer", code, again)
	}
	if code, reply := post(t, s, cniapi.PathCheckPod, podRequest(netns)); code != http.StatusOK {
		t.Errorf("CHECK: %d %+v", code, reply)
	}
	err = inside.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addr, _ := netlink.ParseAddr("10.1.1.1/24")
		return netlink.AddrDel(link, addr)
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, reply := post(t, s, cniapi.PathCheckPod, podRequest(netns)); code == http.StatusOK || !strings.Contains(reply.ErrInfo, "10.1.1.1/24") {
		t.Errorf("CHECK of a container that lost its address: %d %+v", code, reply)
	}
}

func TestDeleteIsIdempotent(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	netns := netxtest.Namespace(t)
	if code, reply := post(t, s, cniapi.PathAddPod, podRequest(netns)); code != http.StatusOK {
		t.Fatalf("%d %+v", code, reply)
	}
	for i := range 3 { // without namespace, place and pod, as after a reboot
		code, reply := post(t, s, cniapi.PathDelPod, cniapi.PodRequest{ContainerID: "c1", IfName: "eth0"})
		if code != http.StatusOK || w.counts() != "0 endpoints, 0 ports" {
			t.Fatalf("DEL %d: %d %+v, left %s", i+1, code, reply, w.counts())
		}
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		set  func(*world)
		req  func(cniapi.PodRequest) cniapi.PodRequest
		code uint
		msg  string
	}{
		{"netmaster refuses", func(w *world) { w.createErr = errs.Wrap(errs.Invalid, boom) }, nil, cniapi.CodeEndpoint, "Contiv:Error creating EP"},
		{"no netmaster", func(w *world) { w.createErr = errs.Wrap(errs.Unavailable, boom) }, nil, cniapi.CodeTryLater, "Contiv:Error creating EP"},
		{"pool exhausted", func(w *world) { w.createErr = errs.Wrap(errs.Exhausted, boom) }, nil, cniapi.CodeExhausted, "Contiv:Error creating EP"},
		{"no port", func(w *world) { w.attachErr = errs.Wrap(errs.Unavailable, boom) }, nil, cniapi.CodeTryLater, "Contiv:Error setting interface attributes"},
		{"no flows", func(w *world) { w.realiseErr = errs.Wrap(errs.Internal, boom) }, nil, cniapi.CodeEndpoint, "Contiv:Error creating EP"},
		{
			"no namespace", func(*world) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.Netns = "/nowhere"; return r },
			cniapi.CodeNetns, "Contiv:Error moving to netns",
		},
		{
			"bad interface name", func(*world) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.IfName = "a/b"; return r },
			cniapi.CodeInterface, "Contiv:Error setting interface attributes",
		},
		{
			"no container id", func(*world) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.ContainerID = ""; return r },
			cniapi.CodeInvalidEnv, "Contiv:Error creating EP",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.set(w)
			req := podRequest(netxtest.Namespace(t))
			if c.req != nil {
				req = c.req(req)
			}
			code, reply := post(t, w.server(), cniapi.PathAddPod, req)
			if code != http.StatusInternalServerError || reply.Result != 1 || reply.ErrCode != c.code || reply.ErrMsg != c.msg || !strings.HasPrefix(reply.ErrInfo, "Err: ") {
				t.Errorf("%d %+v, expected code %d %q", code, reply, c.code, c.msg)
			}
			if w.counts() != "0 endpoints, 0 ports" {
				t.Errorf("left %s", w.counts())
			}
		})
	}
}

func TestDeleteWhileNetmasterIsAway(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	if code, reply := post(t, s, cniapi.PathAddPod, podRequest(netxtest.Namespace(t))); code != http.StatusOK {
		t.Fatalf("%d %+v", code, reply)
	}
	w.deleteErr = errs.New(errs.Unavailable, "no netmaster leads")
	if code, reply := post(t, s, cniapi.PathDelPod, cniapi.PodRequest{ContainerID: "c1", IfName: "eth0"}); code != http.StatusOK {
		t.Fatalf("DEL: %d %+v, expected success: the rest is done later", code, reply)
	}
	if w.counts() != "1 endpoints, 0 ports" {
		t.Fatalf("left %s", w.counts())
	}
	w.mu.Lock()
	w.deleteErr = nil
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.at.pending.Run(ctx) }()
	for w.counts() != "0 endpoints, 0 ports" {
		runtime.Gosched()
	}
	cancel()
	<-done
}

func TestCollectRemovesLeftOvers(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	netns := netxtest.Namespace(t)
	gone := podRequest(netns)
	if code, reply := post(t, s, cniapi.PathAddPod, gone); code != http.StatusOK {
		t.Fatalf("%d %+v", code, reply)
	}
	if _, err := w.CreateEndpoint(t.Context(), masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: "net1", ConfigEP: masterapi.ConfigEP{Container: "crashed", Host: "host1"},
	}); err != nil {
		t.Fatal(err)
	}
	suspects := s.at.collectOnce(t.Context(), nil)
	if w.counts() != "2 endpoints, 1 ports" || !suspects["net1.default-crashed"] || len(suspects) != 1 {
		t.Fatalf("first pass: %s, suspects %v; expected to suspect only the endpoint without port", w.counts(), suspects)
	}
	suspects = s.at.collectOnce(t.Context(), suspects)
	if w.counts() != "1 endpoints, 1 ports" {
		t.Fatalf("second pass: %s", w.counts())
	}
	_ = unix.Unmount(netns, unix.MNT_DETACH)
	if err := os.Remove(netns); err != nil {
		t.Fatal(err)
	}
	suspects = s.at.collectOnce(t.Context(), suspects)
	s.at.collectOnce(t.Context(), suspects)
	if w.counts() != "0 endpoints, 0 ports" {
		t.Fatalf("after the container has gone: %s", w.counts())
	}
}

func TestGC(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	for _, id := range []string{"keep", "drop"} {
		req := podRequest(netxtest.Namespace(t))
		req.ContainerID = id
		if code, reply := post(t, s, cniapi.PathAddPod, req); code != http.StatusOK {
			t.Fatalf("%d %+v", code, reply)
		}
	}
	code, reply := post(t, s, cniapi.PathGC, cniapi.GCRequest{ValidAttachments: []cniapi.Attachment{{ContainerID: "keep", IfName: "eth0"}}})
	if code != http.StatusOK || w.counts() != "1 endpoints, 1 ports" {
		t.Fatalf("%d %+v, left %s", code, reply, w.counts())
	}
}

func TestStatusAndBadRequests(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	if code, _ := post(t, s, cniapi.PathStatus, struct{}{}); code != http.StatusOK {
		t.Errorf("STATUS of a healthy agent: %d", code)
	}
	w.realiseErr = errs.New(errs.Unavailable, "no OpenFlow channel")
	if code, reply := post(t, s, cniapi.PathStatus, struct{}{}); code != http.StatusInternalServerError || reply.ErrCode != cniapi.CodeLimited {
		t.Errorf("STATUS without switch: %d %+v", code, reply)
	}
	for _, c := range []struct {
		method, path, contentType, body string
		want                            int
	}{
		{"POST", cniapi.PathAddPod, "application/json", "{", 500},
		{"POST", cniapi.PathAddPod, "application/json", `{"CNI_NETNS":7}`, 500},
		{"POST", cniapi.PathAddPod, "application/json", strings.Repeat(" ", maxBody+1), 500},
		{"POST", cniapi.PathAddPod, "text/plain", "{}", 404},
		{"POST", "/ContivCNI.Nothing", "application/json", "{}", 404},
	} {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.contentType)
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, req)
		if rec.Code != c.want {
			t.Errorf("%s %s %q: %d, expected %d", c.method, c.path, c.body[:min(20, len(c.body))], rec.Code, c.want)
		}
	}
}
