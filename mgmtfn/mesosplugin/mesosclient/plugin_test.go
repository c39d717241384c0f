package mesosclient

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
)

// agent gives one answer on a socket and keeps the last request, as it was sent.
type agent struct {
	socket string
	status int
	body   string
	path   string
	req    string
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{socket: filepath.Join(t.TempDir(), "mesos.sock"), status: http.StatusOK}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		a.path, a.req = r.URL.Path, string(raw)
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return a
}

// conf is a network configuration with these members besides socket and log.
func (a *agent) conf(members string) string {
	return `{"socket":"` + a.socket + `","logFile":"/dev/null"` + members + `}`
}

// run executes a call and returns its exit code and standard output.
func run(env map[string]string, stdin string) (int, string) {
	var out bytes.Buffer
	p := &Plugin{Env: func(name string) string { return env[name] }, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: io.Discard}
	return p.Run(), out.String()
}

// container is the environment of a call.
func container(command string) map[string]string {
	return map[string]string{"CNI_COMMAND": command, "CNI_CONTAINERID": "8f0c1d52-0f5e", "CNI_IFNAME": "eth0", "CNI_NETNS": "/nowhere/ns"}
}

// withArgs is the member that the isolator adds.
const withArgs = `,"args":{"org.apache.mesos":{"network_info":{"name":"any","labels":{"labels":[{"key":"io.contiv.network","value":"web-net"},{"key":"a"}]}}}}`

// TestRequests checks what the agent is asked, to the byte.
func TestRequests(t *testing.T) {
	a := newAgent(t)
	const head = `{"cni_ifname":"eth0","cni_netns":"/nowhere/ns","cni_containerid":"8f0c1d52-0f5e","labels":`
	for _, c := range []struct{ name, command, conf, path, want string }{
		{"labels on standard input", "ADD", withArgs, mesosapi.PathAdd, head + `{"a":"","io.contiv.network":"web-net"},"cni_version":"0.2.0"}`},
		{"lower case", "add", "", mesosapi.PathAdd, head + `{},"cni_version":"0.2.0"}`},
		{"the configuration's words", "ADD", `,"cniVersion":"1.0.0","name":"web","dns":{"search":["a.b"]}`, mesosapi.PathAdd, head + `{},"cni_version":"1.0.0","cni_network":"web","dns":{"search":["a.b"]}}`},
		{"deletion", "DEL", withArgs, mesosapi.PathDelete, head + `{"a":"","io.contiv.network":"web-net"},"cni_version":"0.2.0"}`},
		{"check", "CHECK", "", mesosapi.PathCheck, head + `{},"cni_version":"0.2.0"}`},
		{"status", "STATUS", `,"cniVersion":"1.1.0"`, mesosapi.PathStatus, head + `{},"cni_version":"1.1.0"}`},
		{"collection", "GC", `,"cniVersion":"1.1.0","cni.dev/valid-attachments":[{"containerID":"c","ifname":"eth1"}]`, mesosapi.PathGC, head + `{},"cni_version":"1.1.0","valid_attachments":[{"containerID":"c","ifname":"eth1"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.path, a.req = "", ""
			if exit, out := run(container(c.command), a.conf(c.conf)); exit != ExitDone || out != "" {
				t.Errorf("exit %d, printed %q", exit, out)
			}
			if a.path != c.path || a.req != c.want {
				t.Errorf("asked %s %s\nexpected %s %s", a.path, a.req, c.path, c.want)
			}
		})
	}
}

// Labels are found beside the namespace when standard input has none, in a directory of
// the network's name; what cannot be read there is no failure.
func TestLabelsBesideTheNamespace(t *testing.T) {
	a := newAgent(t)
	dir := t.TempDir()
	for network, text := range map[string]string{
		"netcontiv": `{` + withArgs[1:] + `}`, "web": `{"args":{"org.apache.mesos":{"network_info":{"labels":{"labels":[{"key":"io.contiv.tenant","value":"blue"}]}}}}}`,
		"broken": "{", "long": strings.Repeat(" ", maxConf+1),
	} {
		if err := os.MkdirAll(filepath.Join(dir, network), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, network, "network.conf"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		conf string
		want map[string]string
	}{
		{"", map[string]string{"io.contiv.network": "web-net", "a": ""}},
		{`,"name":"web"`, map[string]string{"io.contiv.tenant": "blue"}},
		{`,"name":"web","args":{"org.apache.mesos":{}}`, map[string]string{}},
		{`,"name":"broken"`, map[string]string{}},
		{`,"name":"long"`, map[string]string{}},
		{`,"name":"absent"`, map[string]string{}},
	} {
		env := container("ADD")
		env["CNI_NETNS"] = filepath.Join(dir, "ns")
		if exit, out := run(env, a.conf(c.conf)); exit != ExitDone {
			t.Fatalf("%s: exit %d, printed %q", c.conf, exit, out)
		}
		var req mesosapi.Request
		if err := json.Unmarshal([]byte(a.req), &req); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, req.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.conf, diff)
		}
	}
}

func TestAnswersArePrinted(t *testing.T) {
	a := newAgent(t)
	a.body = `{"ip4":{"ip":"10.36.28.7/24","gateway":"10.36.28.1"},"ip6":{"ip":""},"dns":{}}`
	if exit, out := run(container("ADD"), a.conf("")); exit != ExitDone || out != a.body+"\n" {
		t.Errorf("exit %d, printed %q, expected the agent's answer", exit, out)
	}
	env := container("DEL")
	env["CNI_NETNS"] = ""
	a.body = ""
	if exit, out := run(env, a.conf("")); exit != ExitDone || out != "" {
		t.Errorf("DEL without a namespace: exit %d, printed %q", exit, out)
	}
}

func TestVersion(t *testing.T) {
	const want = `{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}` + "\n"
	for _, stdin := range []string{"", "{", `{"cniVersion":"9"}`, `{"logFile":"/dev/null"}`} {
		if exit, out := run(map[string]string{"CNI_COMMAND": "version"}, stdin); exit != ExitDone || out != want {
			t.Errorf("exit %d, printed %q", exit, out)
		}
	}
}

// What makes no sense is refused before anybody is asked.
func TestInvalidCalls(t *testing.T) {
	a := newAgent(t)
	without := func(command, name string) map[string]string {
		env := container(command)
		delete(env, name)
		return env
	}
	with := func(command, name, value string) map[string]string {
		env := container(command)
		env[name] = value
		return env
	}
	for name, c := range map[string]struct {
		env    map[string]string
		stdin  string
		answer string
	}{
		"no command":           {without("", "CNI_COMMAND"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_COMMAND \"\": expected ADD, DEL, CHECK, STATUS, GC or VERSION"}`},
		"unknown command":      {container("MOVE"), a.conf(`,"cniVersion":"1.0.0"`), `{"cniVersion":"1.0.0","code":4,"msg":"contiv: CNI_COMMAND \"MOVE\": expected ADD, DEL, CHECK, STATUS, GC or VERSION"}`},
		"no container":         {without("DEL", "CNI_CONTAINERID"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_CONTAINERID is missing"}`},
		"no interface":         {without("ADD", "CNI_IFNAME"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_IFNAME is missing"}`},
		"no namespace":         {without("ADD", "CNI_NETNS"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_NETNS is missing"}`},
		"no namespace, CHECK":  {without("CHECK", "CNI_NETNS"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_NETNS is missing"}`},
		"a path as container":  {with("ADD", "CNI_CONTAINERID", "../x"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_CONTAINERID \"../x\": invalid characters in containerID","details":"../x"}`},
		"a path as interface":  {with("ADD", "CNI_IFNAME", "a/b"), a.conf(""), `{"cniVersion":"0.2.0","code":4,"msg":"contiv: CNI_IFNAME \"a/b\": interface name contains / or : or whitespace characters"}`},
		"no JSON":              {container("ADD"), "{", `{"cniVersion":"1.1.0","code":6,"msg":"contiv: cannot read the network configuration","details":"unexpected end of JSON input"}`},
		"a long configuration": {container("ADD"), strings.Repeat(" ", maxConf+1), `{"cniVersion":"1.1.0","code":5,"msg":"contiv: cannot read the network configuration","details":"more than 1 MiB"}`},
		"unknown version":      {container("ADD"), a.conf(`,"cniVersion":"9"`), `{"cniVersion":"1.1.0","code":1,"msg":"contiv: incompatible CNI version","details":"cniVersion \"9\": expected one of [0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0]"}`},
		"a path as network":    {container("ADD"), a.conf(`,"name":"../x"`), `{"cniVersion":"0.2.0","code":7,"msg":"contiv: invalid network configuration","details":"name \"../x\": invalid characters found in network name"}`},
		"STATUS of old":        {container("STATUS"), a.conf(""), `{"cniVersion":"0.2.0","code":1,"msg":"contiv: STATUS is of CNI 1.1.0, the configuration of 0.2.0"}`},
		"GC of old":            {container("GC"), a.conf(`,"cniVersion":"1.0.0"`), `{"cniVersion":"1.0.0","code":1,"msg":"contiv: GC is of CNI 1.1.0, the configuration of 1.0.0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			exit, out := run(c.env, c.stdin)
			if exit != ExitInvalid || out != c.answer+"\n" {
				t.Errorf("exit %d, printed %s\nexpected 1, %s", exit, out, c.answer)
			}
			if a.path != "" {
				t.Errorf("the agent was asked %s", a.path)
			}
		})
	}
}

func TestFailedCalls(t *testing.T) {
	a := newAgent(t)
	for _, c := range []struct {
		name    string
		status  int
		body    string
		command string
		want    types.Error
	}{
		{"the agent refuses", 500, `{"cniVersion":"0.2.0","code":105,"msg":"Contiv: failed to create endpoint","details":"full"}`, "ADD", types.Error{Code: 105, Msg: "Contiv: failed to create endpoint", Details: "full"}},
		{"the original's agent refuses", 500, `{"cniVersion":"0.2","code":2,"msg":"Contiv: failed to create endpoint"}`, "ADD", types.Error{Code: 2, Msg: "Contiv: failed to create endpoint"}},
		{"no reason", 500, "", "ADD", types.Error{Code: types.ErrInternal, Msg: "contiv: netplugin fails without saying why"}},
		{"the original's agent cannot check", 503, "", "CHECK", types.Error{Code: types.ErrInternal, Msg: "contiv: netplugin answers 503 Service Unavailable", Details: mesosapi.PathCheck}},
		{"no JSON", 200, "<html>", "ADD", types.Error{Code: 6, Msg: "contiv: unreadable answer of netplugin"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.status, a.body = c.status, c.body
			exit, out := run(container(c.command), a.conf(""))
			var got types.Error
			if err := json.Unmarshal([]byte(out), &got); err != nil || exit != ExitFailed {
				t.Fatalf("exit %d, printed %q: %v", exit, out, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for command, code := range map[string]string{"ADD": "11", "DEL": "11", "STATUS": "50"} {
		exit, out := run(container(command), `{"cniVersion":"1.1.0","socket":"/nowhere.sock","logFile":"/dev/null"}`)
		if exit != ExitFailed || !strings.HasPrefix(out, `{"cniVersion":"1.1.0","code":`+code+`,"msg":"contiv: netplugin is not serving Mesos"`) {
			t.Errorf("%s without an agent: exit %d, printed %s", command, exit, out)
		}
	}
}

func TestLogLines(t *testing.T) {
	a := newAgent(t)
	path := filepath.Join(t.TempDir(), "netcontiv.log")
	if exit, out := run(container("ADD"), strings.Replace(a.conf(""), "/dev/null", path, 1)); exit != ExitDone {
		t.Fatalf("exit %d, printed %q", exit, out)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), ` CMD=ADD CID=8f0c1d52 msg="eth0 of 8f0c1d52-0f5e in /nowhere/ns, labels map[]"`) || !strings.Contains(string(text), "no labels, the defaults apply") {
		t.Errorf("%v, the log has %s", err, text)
	}
}

func FuzzNetworkConfiguration(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.1.0","name":"n"` + withArgs + `,"cni.dev/valid-attachments":[{"containerID":"c"}],"dns":{}}`))
	f.Add([]byte(`{"name":"../../etc"}`))
	f.Fuzz(func(t *testing.T, stdin []byte) {
		conf, invalid := parseConf(stdin)
		if invalid != nil {
			return
		}
		if strings.Contains(conf.Name, "/") {
			t.Errorf("name %q", conf.Name)
		}
		if labels, err := conf.labels(""); labels == nil || err != nil {
			t.Errorf("labels %v, %v", labels, err)
		}
		var req mesosapi.Request
		validAttachments(conf, &req)
	})
}
