package cniclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
)

// agent serves one canned answer on a socket and keeps the last request.
type agent struct {
	socket string
	status int
	reply  any
	path   string
	req    cniapi.PodRequest
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{socket: filepath.Join(t.TempDir(), "cni.sock"), status: http.StatusOK}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.path, a.req = r.URL.Path, cniapi.PodRequest{}
		_ = json.NewDecoder(r.Body).Decode(&a.req)
		w.WriteHeader(a.status)
		if raw, ok := a.reply.(string); ok {
			_, _ = w.Write([]byte(raw))
			return
		}
		_ = json.NewEncoder(w).Encode(a.reply)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return a
}

func (a *agent) args(version, more string) *skel.CmdArgs {
	return &skel.CmdArgs{
		ContainerID: "c1", Netns: "/run/netns/c1", IfName: "eth0",
		Args:      "IgnoreUnknown=1;K8S_POD_UID=u;K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop;K8S_POD_INFRA_CONTAINER_ID=c1;odd",
		StdinData: []byte(`{"cniVersion":"` + version + `","name":"contiv-net","type":"contivk8s","socket":"` + a.socket + `","logFile":"/dev/null"` + more + `}`),
	}
}

var attached = cniapi.PodReply{
	EndpointID: "c1", IPAddress: "20.1.1.9/24", IPv6Address: "2001:db8::9/64", MAC: "02:02:14:01:01:09", MTU: 1450, HostIntf: "vvport7",
	Gateway: "20.1.1.1", IPv6Gateway: "fe80::1",
	Routes: []cniapi.Route{{Dst: "0.0.0.0/0", Gateway: "20.1.1.1"}, {Dst: "fe80::1/128"}, {Dst: "::/0", Gateway: "fe80::1"}},
}

func TestAddAnswersInEveryVersion(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0": `{"cniVersion":"0.1.0","dns":{},"ip4":{"gateway":"20.1.1.1","ip":"20.1.1.9/24","routes":[{"dst":"0.0.0.0/0","gw":"20.1.1.1"}]},"ip6":{"gateway":"fe80::1","ip":"2001:db8::9/64","routes":[{"dst":"fe80::1/128"},{"dst":"::/0","gw":"fe80::1"}]}}`,
		"0.3.1": `{"cniVersion":"0.3.1","dns":{},"interfaces":[{"name":"vvport7"},{"mac":"02:02:14:01:01:09","name":"eth0","sandbox":"/run/netns/c1"}],"ips":[{"address":"20.1.1.9/24","gateway":"20.1.1.1","interface":1,"version":"4"},{"address":"2001:db8::9/64","gateway":"fe80::1","interface":1,"version":"6"}],"routes":[{"dst":"0.0.0.0/0","gw":"20.1.1.1"},{"dst":"fe80::1/128"},{"dst":"::/0","gw":"fe80::1"}]}`,
		"1.0.0": `{"cniVersion":"1.0.0","interfaces":[{"name":"vvport7"},{"mac":"02:02:14:01:01:09","mtu":1450,"name":"eth0","sandbox":"/run/netns/c1"}],"ips":[{"address":"20.1.1.9/24","gateway":"20.1.1.1","interface":1},{"address":"2001:db8::9/64","gateway":"fe80::1","interface":1}],"routes":[{"dst":"0.0.0.0/0","gw":"20.1.1.1"},{"dst":"fe80::1/128"},{"dst":"::/0","gw":"fe80::1"}]}`,
		"1.1.0": `{"cniVersion":"1.1.0","interfaces":[{"name":"vvport7"},{"mac":"02:02:14:01:01:09","mtu":1450,"name":"eth0","sandbox":"/run/netns/c1"}],"ips":[{"address":"20.1.1.9/24","gateway":"20.1.1.1","interface":1},{"address":"2001:db8::9/64","gateway":"fe80::1","interface":1}],"routes":[{"dst":"0.0.0.0/0","gw":"20.1.1.1"},{"dst":"fe80::1/128"},{"dst":"::/0","gw":"fe80::1"}]}`,
	} {
		t.Run(version, func(t *testing.T) {
			a := newAgent(t)
			a.reply = attached
			var out bytes.Buffer
			p := &Plugin{Stdout: &out}
			if err := p.Add(a.args(version, "")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, want), canonical(t, out.String())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func canonical(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %q", err, s)
	}
	return v
}

func TestRequestSaysWhereToAttach(t *testing.T) {
	a := newAgent(t)
	a.reply = attached
	args := a.args("1.0.0", `,"mtu":1400,"runtimeConfig":{"ips":["10.1.1.7/24"],"mac":"02:00:00:00:00:07","portMappings":[]},"contiv":{"tenant":"blue","network":"net1","group":"web"},"future":{"x":1}`)
	args.Args += ";CONTIV_GROUP=db"
	if err := (&Plugin{Stdout: &bytes.Buffer{}}).Add(args); err != nil {
		t.Fatal(err)
	}
	want := cniapi.PodRequest{
		Name: "web-0", Namespace: "shop", InfraContainerID: "c1", Netns: "/run/netns/c1", IfName: "eth0", ContainerID: "c1", PodUID: "u", Config: "contiv-net",
		Tenant: "blue", Network: "net1", Group: "db", MTU: 1400,
		RuntimeConfig: &cniapi.RuntimeConfig{IPs: []string{"10.1.1.7/24"}, MAC: "02:00:00:00:00:07"},
	}
	if diff := cmp.Diff(want, a.req); diff != "" || a.path != cniapi.PathAddPod {
		t.Errorf("%s (-want +got):\n%s", a.path, diff)
	}
}

func TestChainedPluginAddsToTheResult(t *testing.T) {
	a := newAgent(t)
	a.reply = attached
	var out bytes.Buffer
	prev := `,"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"lo"}],"ips":[{"address":"127.0.0.1/8","interface":0}]}`
	if err := (&Plugin{Stdout: &out}).Add(a.args("1.0.0", prev)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.1/8", "20.1.1.9/24", `"interface": 2`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the result lacks %s: %s", want, out.String())
		}
	}
}

// The resolver of containers is that of the configuration, else that of the plugins before.
func TestResolverOfTheResult(t *testing.T) {
	a := newAgent(t)
	a.reply = attached
	const prev = `,"prevResult":{"cniVersion":"1.0.0","dns":{"nameservers":["192.0.2.9"]}}`
	const conf = `,"dns":{"nameservers":["20.1.1.1"],"search":["default.contiv.local"]}`
	for _, c := range []struct{ members, want string }{
		{conf, `"20.1.1.1"`},
		{prev, `"192.0.2.9"`},
		{conf + prev, `"default.contiv.local"`},
	} {
		var out bytes.Buffer
		if err := (&Plugin{Stdout: &out}).Add(a.args("1.0.0", c.members)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("with %q the result lacks %s: %s", c.members, c.want, out.String())
		}
	}
}

func TestErrorsHaveTheSpecifiedCodes(t *testing.T) {
	a := newAgent(t)
	add := func(p *Plugin, args *skel.CmdArgs) error { return p.Add(args) }
	for _, c := range []struct {
		name   string
		status int
		reply  any
		args   *skel.CmdArgs
		call   func(*Plugin, *skel.CmdArgs) error
		code   uint
		text   string
	}{
		{"agent's code", 500, cniapi.PodReply{Result: 1, ErrCode: 105, ErrMsg: "Contiv:Error creating EP", ErrInfo: "Err: full"}, a.args("1.0.0", ""), add, 105, "Err: full"},
		{"original agent", 500, cniapi.PodReply{Result: 1, ErrMsg: "Contiv:Error creating EP", ErrInfo: "Err: x"}, a.args("1.0.0", ""), add, 1, "Contiv:Error creating EP"},
		{"agent without details", 500, "{}", a.args("1.0.0", ""), add, 1, "internal server error"},
		{"no JSON", 200, "<html>", a.args("1.0.0", ""), add, types.ErrDecodingFailure, "unreadable answer"},
		{"not found", 404, "", a.args("1.0.0", ""), add, 1, "page not found"},
		{"forbidden", 403, "", a.args("1.0.0", ""), add, 1, "access denied"},
		{"bad address", 200, cniapi.PodReply{IPAddress: "nonsense"}, a.args("1.0.0", ""), add, types.ErrInternal, "unusable answer"},
		{"bad mtu", 200, attached, a.args("1.0.0", `,"mtu":-1`), add, types.ErrInvalidNetworkConfig, "mtu -1"},
		{"bad configuration", 200, attached, &skel.CmdArgs{StdinData: []byte("{")}, add, types.ErrDecodingFailure, "network configuration"},
		{"no agent", 200, attached, &skel.CmdArgs{StdinData: []byte(`{"cniVersion":"1.0.0","socket":"/nowhere.sock","logFile":"/dev/null"}`)}, add, 11, "is netplugin running?"},
		{"CHECK without prevResult", 200, attached, a.args("1.0.0", ""), func(p *Plugin, args *skel.CmdArgs) error { return p.Check(args) }, types.ErrInvalidNetworkConfig, "prevResult"},
		{"STATUS without agent", 200, attached, &skel.CmdArgs{StdinData: []byte(`{"cniVersion":"1.1.0","socket":"/nowhere.sock"}`)}, func(p *Plugin, args *skel.CmdArgs) error { return p.Status(args) }, 50, "is netplugin running?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.status, a.reply = c.status, c.reply
			var out bytes.Buffer
			p := &Plugin{Stdout: &out}
			err := c.call(p, c.args)
			var ce *types.Error
			if !errors.As(err, &ce) || ce.Code != c.code || !strings.Contains(ce.Msg+" "+ce.Details, c.text) {
				t.Fatalf("error %+v, expected code %d with %q", err, c.code, c.text)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q besides the error", out.String())
			}
			if err := p.PrintError(ce); err != nil || !strings.Contains(out.String(), `"cniVersion":`) || !strings.Contains(out.String(), `"code":`) {
				t.Errorf("%v, printed %q", err, out.String())
			}
		})
	}
}

func TestDelNeedsNeitherNamespaceNorArgs(t *testing.T) {
	a := newAgent(t)
	a.reply = cniapi.PodReply{EndpointID: "c1"}
	args := a.args("1.0.0", "")
	args.Netns, args.Args = "", ""
	var out bytes.Buffer
	if err := (&Plugin{Stdout: &out}).Del(args); err != nil || out.Len() > 0 {
		t.Errorf("%v, printed %q", err, out.String())
	}
	if a.path != cniapi.PathDelPod || a.req.ContainerID != "c1" {
		t.Errorf("asked %s %+v", a.path, a.req)
	}
}

// A pod must not be kept from ending because the agent is down, or cannot do it now.
func TestDelLeavesANote(t *testing.T) {
	a := newAgent(t)
	dir := cni.NotesDir(a.socket)
	later := cniapi.PodReply{Result: 1, ErrCode: cni.CodeTryLater, ErrMsg: "Contiv:Error creating EP"}
	for _, c := range []struct {
		name  string
		reply any
		down  bool
		fails bool
	}{
		{name: "done", reply: cniapi.PodReply{EndpointID: "c1"}},
		{name: "refused", reply: cniapi.PodReply{Result: 1, ErrCode: cni.CodeInvalidEnv}, fails: true},
		{name: "later", reply: later},
		{name: "down", down: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.status, a.reply = http.StatusOK, c.reply
			args := a.args("1.0.0", "")
			if c.down {
				args.StdinData = bytes.ReplaceAll(args.StdinData, []byte(a.socket), []byte(a.socket+"-of-nobody"))
			}
			if err := (&Plugin{Stdout: &bytes.Buffer{}}).Del(args); (err != nil) != c.fails {
				t.Errorf("error %v, expected one: %v", err, c.fails)
			}
			was, err := cni.Note{ContainerID: "c1", IfName: "eth0"}.Drop(dir)
			if expected := c.down || c.name == "later"; was != expected || err != nil {
				t.Errorf("a note: %v, %v; expected %v", was, err, expected)
			}
		})
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.reply = later
	if err := (&Plugin{Stdout: &bytes.Buffer{}}).Del(a.args("1.0.0", "")); err == nil {
		t.Error("DEL succeeds though neither the agent does it nor a note can be left")
	}
}

func FuzzNetworkConfiguration(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.0.0","name":"n","type":"contivk8s","contiv":{"tenant":"t"},"prevResult":{"cniVersion":"1.0.0","ips":[]}}`), "K8S_POD_NAME=a;b;=c;;x=y=z")
	f.Fuzz(func(_ *testing.T, stdin []byte, cniArgs string) {
		conf, err := (&Plugin{}).parseConf(stdin)
		if err != nil {
			return
		}
		conf.request("c", "/ns", "eth0", cniArgs)
	})
}
