package k8splugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func newServer(w *attachmenttest.Cluster) *Server {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return NewServer(attachment.New(attachment.Config{HostLabel: "host1", Master: w, Agent: w, Ports: w, Log: log}))
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
	w := attachmenttest.New(t)
	s := newServer(w)
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
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		if got := link.Attrs().HardwareAddr.String(); got != "02:02:0a:01:01:01" {
			t.Errorf("mac %s", got)
		}
		routes, err := netlinksafe.RouteList(link, netlink.FAMILY_ALL)
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
		link, err := netlinksafe.LinkByName("eth0")
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
	w := attachmenttest.New(t)
	s := newServer(w)
	netns := netxtest.Namespace(t)
	if code, reply := post(t, s, cniapi.PathAddPod, podRequest(netns)); code != http.StatusOK {
		t.Fatalf("%d %+v", code, reply)
	}
	for i := range 3 { // without namespace, place and pod, as after a reboot
		code, reply := post(t, s, cniapi.PathDelPod, cniapi.PodRequest{ContainerID: "c1", IfName: "eth0"})
		if code != http.StatusOK || w.Counts() != "0 endpoints, 0 ports" {
			t.Fatalf("DEL %d: %d %+v, left %s", i+1, code, reply, w.Counts())
		}
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		set  func(*attachmenttest.Cluster)
		req  func(cniapi.PodRequest) cniapi.PodRequest
		code uint
		msg  string
	}{
		{"netmaster refuses", func(w *attachmenttest.Cluster) { w.Fail(attachmenttest.Create, errs.Wrap(errs.Invalid, boom)) }, nil, cni.CodeEndpoint, "Contiv:Error creating EP"},
		{"no netmaster", func(w *attachmenttest.Cluster) { w.Fail(attachmenttest.Create, errs.Wrap(errs.Unavailable, boom)) }, nil, cni.CodeTryLater, "Contiv:Error creating EP"},
		{"pool exhausted", func(w *attachmenttest.Cluster) { w.Fail(attachmenttest.Create, errs.Wrap(errs.Exhausted, boom)) }, nil, cni.CodeExhausted, "Contiv:Error creating EP"},
		{"no port", func(w *attachmenttest.Cluster) { w.Fail(attachmenttest.Attach, errs.Wrap(errs.Unavailable, boom)) }, nil, cni.CodeTryLater, "Contiv:Error setting interface attributes"},
		{"no flows", func(w *attachmenttest.Cluster) { w.Fail(attachmenttest.Ready, errs.Wrap(errs.Internal, boom)) }, nil, cni.CodeEndpoint, "Contiv:Error creating EP"},
		{
			"no namespace", func(*attachmenttest.Cluster) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.Netns = "/nowhere"; return r },
			cni.CodeNetns, "Contiv:Error moving to netns",
		},
		{
			"bad interface name", func(*attachmenttest.Cluster) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.IfName = "a/b"; return r },
			cni.CodeInterface, "Contiv:Error setting interface attributes",
		},
		{
			"no container id", func(*attachmenttest.Cluster) {}, func(r cniapi.PodRequest) cniapi.PodRequest { r.ContainerID = ""; return r },
			cni.CodeInvalidEnv, "Contiv:Error creating EP",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := attachmenttest.New(t)
			c.set(w)
			req := podRequest(netxtest.Namespace(t))
			if c.req != nil {
				req = c.req(req)
			}
			code, reply := post(t, newServer(w), cniapi.PathAddPod, req)
			if code != http.StatusInternalServerError || reply.Result != 1 || reply.ErrCode != c.code || reply.ErrMsg != c.msg || !strings.HasPrefix(reply.ErrInfo, "Err: ") {
				t.Errorf("%d %+v, expected code %d %q", code, reply, c.code, c.msg)
			}
			if w.Counts() != "0 endpoints, 0 ports" {
				t.Errorf("left %s", w.Counts())
			}
		})
	}
}

func TestGC(t *testing.T) {
	w := attachmenttest.New(t)
	s := newServer(w)
	for _, id := range []string{"keep", "drop"} {
		req := podRequest(netxtest.Namespace(t))
		req.ContainerID = id
		if code, reply := post(t, s, cniapi.PathAddPod, req); code != http.StatusOK {
			t.Fatalf("%d %+v", code, reply)
		}
	}
	code, reply := post(t, s, cniapi.PathGC, cniapi.GCRequest{ValidAttachments: []cniapi.Attachment{{ContainerID: "keep", IfName: "eth0"}}})
	if code != http.StatusOK || w.Counts() != "1 endpoints, 1 ports" {
		t.Fatalf("%d %+v, left %s", code, reply, w.Counts())
	}
}

func TestStatusAndBadRequests(t *testing.T) {
	w := attachmenttest.New(t)
	s := newServer(w)
	if code, _ := post(t, s, cniapi.PathStatus, struct{}{}); code != http.StatusOK {
		t.Errorf("STATUS of a healthy agent: %d", code)
	}
	w.Fail(attachmenttest.Ready, errs.New(errs.Unavailable, "no OpenFlow channel"))
	if code, reply := post(t, s, cniapi.PathStatus, struct{}{}); code != http.StatusInternalServerError || reply.ErrCode != cni.CodeLimited {
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
