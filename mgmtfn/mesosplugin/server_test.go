package mesosplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/attachment/attachmenttest"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func newServer(w *attachmenttest.Cluster) *Server {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	at := attachment.New(attachment.Config{HostLabel: "host1", Master: w, Agent: w, Ports: w, Log: log})
	return New(Config{Attacher: at, Log: log})
}

// ipv4 makes a world whose network has a gateway of both families, but addresses of IPv4
// only.
func ipv4(t *testing.T) *attachmenttest.Cluster {
	w := attachmenttest.New(t)
	w.Net.Subnet6, w.Net.Gateway6 = netip.Prefix{}, netip.MustParseAddr("2001:db8::fe")
	return w
}

func post(s *Server, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	return rec
}

func expect(t *testing.T, rec *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if rec.Code != status || rec.Body.String() != body {
		t.Errorf("%d %s\nexpected %d %s", rec.Code, rec.Body, status, body)
	}
	contentType := ""
	if body != "" {
		contentType = "application/json"
	}
	if got := rec.Header().Get("Content-Type"); got != contentType {
		t.Errorf("Content-Type %q, expected %q", got, contentType)
	}
}

// old is a request as the original's plugin makes it.
func old(netns string) string {
	return `{"cni_ifname":"eth0","cni_netns":"` + netns + `","cni_containerid":"8f0c1d52-0f5e","labels":{"io.contiv.network":"net1"}}`
}

// The original's plugins get the original's bytes.
func TestOldPlugins(t *testing.T) {
	w := ipv4(t)
	s := newServer(w)
	netns := netxtest.Namespace(t)
	const added = `{"ip4":{"ip":"10.1.1.1/24","gateway":"10.1.1.254"},"ip6":{"ip":""},"dns":{}}`
	expect(t, post(s, "/MesosNwIntfAdd", old(netns)), http.StatusOK, added)
	expect(t, post(s, "/MesosNwIntfAdd", old(netns)), http.StatusOK, added)
	for range 2 {
		expect(t, post(s, "/MesosNwIntfDel", old(netns)), http.StatusOK, "")
		if w.Counts() != "0 endpoints, 0 ports" {
			t.Fatalf("left %s", w.Counts())
		}
	}
	w.Fail(attachmenttest.Create, errors.New("no more\n addresses"))
	expect(t, post(s, "/MesosNwIntfAdd", old(netns)), http.StatusInternalServerError,
		`{"cniVersion":"0.2","code":2,"msg":"Contiv: failed to create endpoint: no more addresses"}`)
	if w.Counts() != "0 endpoints, 0 ports" {
		t.Errorf("the failed call left %s", w.Counts())
	}
}

// The original's shape has the network's gateways and no others: containers of a network
// without are led through the switch.
func TestOldGateways(t *testing.T) {
	for name, c := range map[string]struct {
		gateway4, gateway6 string
		want               string
	}{
		"IPv4": {"10.1.1.254", "", `{"ip4":{"ip":"10.1.1.1/24","gateway":"10.1.1.254"},"ip6":{"ip":"2001:db8::1/100"},"dns":{}}`},
		"IPv6": {"", "2001:db8::fe", `{"ip4":{"ip":"10.1.1.1/24"},"ip6":{"ip":"2001:db8::1/100","gateway":"2001:db8::fe"},"dns":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := attachmenttest.New(t)
			w.Net.Gateway4, _ = netip.ParseAddr(c.gateway4)
			w.Net.Gateway6, _ = netip.ParseAddr(c.gateway6)
			expect(t, post(newServer(w), "/MesosNwIntfAdd", old(netxtest.Namespace(t))), http.StatusOK, c.want)
		})
	}
}

func TestWhatIsNoCall(t *testing.T) {
	s := newServer(attachmenttest.New(t))
	for _, c := range []struct{ method, path, contentType string }{
		{"GET", mesosapi.PathAdd, "application/json"},
		{"POST", mesosapi.PathAdd, ""},
		{"POST", mesosapi.PathDelete, "text/plain"},
		{"POST", "/ContivCNI.AddPod", "application/json"},
		{"POST", "/", "application/json"},
	} {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
		req.Header.Set("Content-Type", c.contentType)
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, req)
		expect(t, rec, http.StatusServiceUnavailable, "")
	}
}

func TestRefusedRequests(t *testing.T) {
	s := newServer(attachmenttest.New(t))
	for _, c := range []struct{ name, path, body, want string }{
		{"no JSON", mesosapi.PathAdd, "{", `{"cniVersion":"0.2","code":2,"msg":"Contiv: invalid request: unreadable request: unexpected end of JSON input"}`},
		{"no JSON of DEL", mesosapi.PathDelete, "7", `{"cniVersion":"0.2","code":2,"msg":"Contiv: invalid request: unreadable request: json: cannot unmarshal number into Go value of type mesosapi.Request"}`},
		{"too long", mesosapi.PathDelete, strings.Repeat(" ", maxBody+1), `{"cniVersion":"0.2","code":2,"msg":"Contiv: invalid request: unreadable request: http: request body too large"}`},
		{"no container", mesosapi.PathAdd, `{"cni_version":"0.2.0","cni_ifname":"eth0","cni_netns":"/x"}`, `{"cniVersion":"0.2.0","code":4,"msg":"Contiv: invalid request","details":"container id \"\", network namespace \"/x\" and interface name \"eth0\" must all be given"}`},
		{"no container to detach", mesosapi.PathDelete, `{"cni_version":"0.2.0"}`, `{"cniVersion":"0.2.0","code":4,"msg":"Contiv: invalid request","details":"no container id given"}`},
		{"a container id that is none", mesosapi.PathAdd, `{"cni_version":"0.2.0","cni_ifname":"eth0","cni_netns":"/x","cni_containerid":"../c"}`, `{"cniVersion":"0.2.0","code":4,"msg":"Contiv: invalid request","details":"container id \"../c\": invalid characters in containerID"}`},
		{"no namespace", mesosapi.PathAdd, `{"cni_version":"1.0.0","cni_ifname":"eth0","cni_netns":"/nowhere","cni_containerid":"c"}`, `{"cniVersion":"1.0.0","code":102,"msg":"Contiv: failed to enter the network namespace","details":"network namespace /nowhere: failed to Statfs \"/nowhere\": no such file or directory"}`},
		{"unknown version", mesosapi.PathAdd, `{"cni_version":"9.0.0"}`, `{"cniVersion":"1.1.0","code":1,"msg":"Contiv: invalid request","details":"version \"9.0.0\" of the CNI specification: expected one of [0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0]"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, post(s, c.path, c.body), http.StatusInternalServerError, c.want)
		})
	}
}

func TestResultsInEveryVersion(t *testing.T) {
	const old4 = `"ip4":{"ip":"10.1.1.1/24","gateway":"10.1.1.254","routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}]},"dns":{"nameservers":["192.0.2.53"]}}`
	for version, want := range map[string]string{
		"0.1.0": `{"cniVersion":"0.1.0",` + old4,
		"0.2.0": `{"cniVersion":"0.2.0",` + old4,
		"0.3.0": `{"cniVersion":"0.3.0","interfaces":[{"name":"PORT"},{"name":"eth0","mac":"02:02:0a:01:01:01","sandbox":"NETNS"}],"ips":[{"version":"4","interface":1,"address":"10.1.1.1/24","gateway":"10.1.1.254"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}],"dns":{"nameservers":["192.0.2.53"]}}`,
		"0.3.1": `{"cniVersion":"0.3.1","interfaces":[{"name":"PORT"},{"name":"eth0","mac":"02:02:0a:01:01:01","sandbox":"NETNS"}],"ips":[{"version":"4","interface":1,"address":"10.1.1.1/24","gateway":"10.1.1.254"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}],"dns":{"nameservers":["192.0.2.53"]}}`,
		"0.4.0": `{"cniVersion":"0.4.0","interfaces":[{"name":"PORT"},{"name":"eth0","mac":"02:02:0a:01:01:01","sandbox":"NETNS"}],"ips":[{"version":"4","interface":1,"address":"10.1.1.1/24","gateway":"10.1.1.254"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}],"dns":{"nameservers":["192.0.2.53"]}}`,
		"1.0.0": `{"cniVersion":"1.0.0","interfaces":[{"name":"PORT"},{"name":"eth0","mac":"02:02:0a:01:01:01","mtu":1450,"sandbox":"NETNS"}],"ips":[{"interface":1,"address":"10.1.1.1/24","gateway":"10.1.1.254"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}],"dns":{"nameservers":["192.0.2.53"]}}`,
		"1.1.0": `{"cniVersion":"1.1.0","interfaces":[{"name":"PORT"},{"name":"eth0","mac":"02:02:0a:01:01:01","mtu":1450,"sandbox":"NETNS"}],"ips":[{"interface":1,"address":"10.1.1.1/24","gateway":"10.1.1.254"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.1.254"}],"dns":{"nameservers":["192.0.2.53"]}}`,
	} {
		t.Run(version, func(t *testing.T) {
			w := ipv4(t)
			s := newServer(w)
			netns := netxtest.Namespace(t)
			body := strings.TrimSuffix(old(netns), "}") + `,"cni_version":"` + version + `","cni_network":"any","dns":{"nameservers":["192.0.2.53"]}}`
			rec := post(s, mesosapi.PathAdd, body)
			ports := w.Attachments()
			if len(ports) != 1 {
				t.Fatalf("%d %s, left %s", rec.Code, rec.Body, w.Counts())
			}
			want = strings.NewReplacer("PORT", ports[0].Port.OVSName, "NETNS", netns).Replace(want)
			if diff := cmp.Diff(canonical(t, want), canonical(t, rec.Body.String())); rec.Code != http.StatusOK || diff != "" {
				t.Errorf("%d (-want +got):\n%s", rec.Code, diff)
			}
			expect(t, post(s, mesosapi.PathCheck, body), http.StatusOK, "")
		})
	}
}

// canonical is a JSON text without the order of its members, which the library that
// writes results chooses.
func canonical(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestFailuresHaveCodes(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		call attachmenttest.Call
		err  error
		want string
	}{
		"pool exhausted": {attachmenttest.Create, errs.Wrap(errs.Exhausted, boom), `{"cniVersion":"0.2.0","code":105,"msg":"Contiv: failed to create endpoint","details":"boom"}`},
		"no netmaster":   {attachmenttest.Create, errs.Wrap(errs.Unavailable, boom), `{"cniVersion":"0.2.0","code":11,"msg":"Contiv: failed to create endpoint","details":"boom"}`},
		"no port":        {attachmenttest.Attach, boom, `{"cniVersion":"0.2.0","code":103,"msg":"Contiv: failed to set up the interface","details":"boom"}`},
		"no flows":       {attachmenttest.Ready, boom, `{"cniVersion":"0.2.0","code":101,"msg":"Contiv: failed to create endpoint","details":"boom"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := ipv4(t)
			w.Fail(c.call, c.err)
			body := strings.TrimSuffix(old(netxtest.Namespace(t)), "}") + `,"cni_version":"0.2.0"}`
			expect(t, post(newServer(w), mesosapi.PathAdd, body), http.StatusInternalServerError, c.want)
			if w.Counts() != "0 endpoints, 0 ports" {
				t.Errorf("left %s", w.Counts())
			}
		})
	}
}

// A port that cannot be removed fails the deletion; when repeated, it succeeds.
func TestDeletionSaysWhatFailed(t *testing.T) {
	w := ipv4(t)
	s := newServer(w)
	body := strings.TrimSuffix(old(netxtest.Namespace(t)), "}") + `,"cni_version":"1.0.0"}`
	if rec := post(s, mesosapi.PathAdd, body); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	w.Fail(attachmenttest.Detach, errors.New("no database"))
	expect(t, post(s, mesosapi.PathDelete, body), http.StatusInternalServerError,
		`{"cniVersion":"1.0.0","code":103,"msg":"Contiv: failed to remove the port","details":"no database"}`)
	w.Fail(attachmenttest.Detach, nil)
	expect(t, post(s, mesosapi.PathDelete, body), http.StatusOK, "")
	if w.Counts() != "0 endpoints, 0 ports" {
		t.Errorf("left %s", w.Counts())
	}
}

// Every interface of a container is an attachment of its own; deletion needs no labels.
func TestInterfacesOfAContainer(t *testing.T) {
	w := ipv4(t)
	s := newServer(w)
	netns := netxtest.Namespace(t)
	second := strings.Replace(old(netns), "eth0", "eth10", 1)
	expect(t, post(s, mesosapi.PathAdd, old(netns)), http.StatusOK, `{"ip4":{"ip":"10.1.1.1/24","gateway":"10.1.1.254"},"ip6":{"ip":""},"dns":{}}`)
	expect(t, post(s, mesosapi.PathAdd, second), http.StatusOK, `{"ip4":{"ip":"10.1.1.2/24","gateway":"10.1.1.254"},"ip6":{"ip":""},"dns":{}}`)
	if w.Counts() != "2 endpoints, 2 ports" {
		t.Fatalf("there are %s", w.Counts())
	}
	expect(t, post(s, mesosapi.PathDelete, `{"cni_ifname":"eth0","cni_containerid":"8f0c1d52-0f5e"}`), http.StatusOK, "")
	if list := w.Attachments(); len(list) != 1 || list[0].EndpointID != "net1.default-8f0c1d52-0f5e-eth10" {
		t.Fatalf("left %+v, expected the second interface alone", list)
	}
	expect(t, post(s, mesosapi.PathGC, `{"cni_version":"1.1.0","valid_attachments":[{"containerID":"8f0c1d52-0f5e","ifname":"eth10"}]}`), http.StatusOK, "")
	if w.Counts() != "1 endpoints, 1 ports" {
		t.Fatalf("left %s, expected what GC is told to leave", w.Counts())
	}
	expect(t, post(s, mesosapi.PathGC, `{"cni_version":"1.1.0","cni_network":"another"}`), http.StatusOK, "")
	if w.Counts() != "1 endpoints, 1 ports" {
		t.Fatalf("left %s after GC of another configuration", w.Counts())
	}
	expect(t, post(s, mesosapi.PathGC, `{"cni_version":"1.1.0"}`), http.StatusOK, "")
	if w.Counts() != "0 endpoints, 0 ports" {
		t.Errorf("left %s", w.Counts())
	}
}

func TestCheckAndStatus(t *testing.T) {
	w := ipv4(t)
	s := newServer(w)
	netns := netxtest.Namespace(t)
	body := strings.TrimSuffix(old(netns), "}") + `,"cni_version":"1.1.0"}`
	expect(t, post(s, mesosapi.PathAdd, old(netns)), http.StatusOK, `{"ip4":{"ip":"10.1.1.1/24","gateway":"10.1.1.254"},"ip6":{"ip":""},"dns":{}}`)
	expect(t, post(s, mesosapi.PathCheck, body), http.StatusOK, "")
	err := ns.WithNetNSPath(netns, func(ns.NetNS) error {
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
	expect(t, post(s, mesosapi.PathCheck, body), http.StatusInternalServerError,
		`{"cniVersion":"1.1.0","code":103,"msg":"Contiv: failed to set up the interface","details":"interface eth0 lacks the address 10.1.1.1/24"}`)
	expect(t, post(s, mesosapi.PathStatus, `{"cni_version":"1.1.0"}`), http.StatusOK, "")
	w.Fail(attachmenttest.Ready, errs.New(errs.Unavailable, "no OpenFlow channel"))
	expect(t, post(s, mesosapi.PathStatus, `{"cni_version":"1.1.0"}`), http.StatusInternalServerError,
		`{"cniVersion":"1.1.0","code":51,"msg":"Contiv: the switch is not ready","details":"no OpenFlow channel"}`)
}

func TestNames(t *testing.T) {
	for args, want := range map[string]string{"": "c1", "A=b;MESOS_TASK_NAME=web.1": "web.1"} {
		if got := wanted(mesosapi.Request{ContainerID: "c1", Args: args}).CommonName; got != want {
			t.Errorf("CNI_ARGS %q: name %q, expected %q", args, got, want)
		}
	}
}

// gate is an agent that is not ready until it is opened.
type gate struct {
	mu      sync.Mutex
	open    bool
	changed chan struct{}
}

func (g *gate) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return errs.New(errs.Unavailable, "waiting for the store")
	}
	return nil
}

func (g *gate) Progress() (int64, int64, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return 0, 0, g.changed
}

// The socket appears when the agent knows the host's networks, and disappears with the
// server.
func TestServesOnceTheAgentIsReady(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	g := &gate{changed: make(chan struct{})}
	s := New(Config{Agent: g, Log: log, Attacher: newServer(attachmenttest.New(t)).cfg.Attacher})
	path := filepath.Join(t.TempDir(), "contiv", "mesos.sock")

	early, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(early, path); err != nil {
		t.Errorf("ended before the agent was ready: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a socket before the agent is ready: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, path) }()
	g.mu.Lock()
	g.open = true
	g.mu.Unlock()
	close(g.changed)
	for {
		select {
		case err := <-done:
			t.Fatalf("the server ends: %v", err)
		default:
		}
		if status, _, err := cni.Post(path, mesosapi.PathStatus, cni.OtherTimeout, mesosapi.Request{}); err == nil {
			if status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			break
		}
	}
	for file, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, mode %v, expected %v", file, err, info.Mode().Perm(), mode)
		}
	}
	if err := s.Run(t.Context(), filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), "listen for Mesos") {
		t.Errorf("where nothing can listen: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket outlives the server: %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(old("/ns")))
	f.Add([]byte(`{"cni_version":"1.1.0","labels":null,"cni_args":"a=b;;=","dns":{"nameservers":[]},"valid_attachments":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := read(bytes.NewReader(raw))
		if err != nil {
			if len(failure(req.Version, err)) == 0 {
				t.Error("no body tells of the error")
			}
			return
		}
		wanted(req)
		if body, err := encode(req, cni.Attached{IPv4: "10.1.1.1/24"}); err != nil || len(body) == 0 {
			t.Errorf("%v, %q", err, body)
		}
	})
}
