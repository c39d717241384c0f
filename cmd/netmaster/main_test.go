package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// execute runs the command line and returns its status and what it prints.
func execute(ctx context.Context, args ...string) (int, string, string) {
	var out, err bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &out, &err
	return cliconf.Run(ctx, cmd, append([]string{"netmaster"}, args...)), out.String(), err.String()
}

var modes = []string{"--mode", "kubernetes", "--netmode", "vxlan", "--fwdmode", "routing"}

func TestOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"infra":                     {[]string{"--infra", "cloud"}, nil, `--infra "cloud" is unknown, expected one of default, aci`},
		"infra in the environment":  {nil, map[string]string{"INFRA": "cloud"}, `--infra "cloud" is unknown, expected one of default, aci`},
		"gateway":                   {[]string{"--aci-gateway", "fabric:5000"}, nil, `--aci-gateway: ACI gateway "fabric:5000" is not a URL, expected http://host:port/`},
		"no name":                   {[]string{"--plugin-name="}, nil, "--name is not set, expected the name of a docker driver"},
		"external address":          {[]string{"--listen-url", "9999"}, nil, `--external-address: "9999" is not host:port`},
		"external port":             {[]string{"--external-address", "0.0.0.0:99999"}, nil, `--external-address: "0.0.0.0:99999" has port "99999", expected 1 to 65535`},
		"internal address":          {[]string{"--control-url", "host:1"}, nil, `--internal-address: "host:1" is not an IP address and a port of 1 to 65535`},
		"internal address of all":   {[]string{"--internal-address", "0.0.0.0:1"}, nil, `--internal-address "0.0.0.0:1": expected the address of one host`},
		"rpc address":               {[]string{"--rpc-address", "all"}, nil, `--rpc-address: "all" is not host:port`},
		"credentials":               {[]string{"--k8s-config", "contiv.json"}, nil, `--k8s-config "contiv.json": expected an absolute path`},
		"grace":                     {[]string{"--dead-host-grace", "10s"}, nil, "--dead-host-grace 10s is less than 1m"},
		"lease":                     {[]string{"--leader-lease", "1s"}, nil, "--leader-lease 1s is not between 2s and 5m"},
		"subnet of one":             {[]string{"--default-subnet", "20.1.1.1/32"}, nil, `--default-subnet "20.1.1.1/32": expected a subnet like 20.1.0.0/16`},
		"subnet of hosts":           {[]string{"--default-subnet", "20.1.1.1/24"}, nil, `--default-subnet "20.1.1.1/24": expected a subnet like 20.1.0.0/16`},
		"gateway elsewhere":         {[]string{"--default-subnet", "20.1.1.0/24", "--default-gateway", "20.1.2.1"}, nil, `--default-gateway "20.1.2.1": expected an address of 20.1.1.0/24`},
		"only IPv6":                 {[]string{"--default-subnet-v6", "fd00::/64"}, nil, "--default-subnet-v6 requires --default-subnet"},
		"wrong family":              {[]string{"--default-subnet", "20.1.1.0/24", "--default-subnet-v6", "20.1.1.0/24"}, nil, `--default-subnet-v6 "20.1.1.0/24": expected a subnet like fd00:20::/64`},
		"lease is no duration":      {[]string{"--leader-lease", "5"}, nil, `invalid value "5" for flag -leader-lease: time: missing unit in duration "5"`},
		"store":                     {[]string{"--store", "redis"}, nil, `--store "redis" is unknown, expected one of embedded, etcd, consul`},
		"plain store":               {[]string{"--tls", "require", "--etcd", "http://192.0.2.1:2379"}, nil, "--tls require, but the store http://192.0.2.1:2379 is not secured: whoever reaches it can change the cluster; use https:// with client certificates, or --tls accept until it has them"},
		"embedded and endpoints":    {[]string{"--store", "embedded", "--etcd", "http://a:1"}, nil, "ambiguous cluster store: --store embedded does not go with --etcd-endpoints"},
		"embedded on a name":        {[]string{"--store", "embedded", "--store-listen", "here:1"}, nil, `--store embedded: the store's client address: "here:1" is not an IP address and a port`},
		"peers of a single one":     {[]string{"--store", "embedded", "--store-peer-listen", "127.0.0.1:1"}, nil, "--store-peer-listen requires --store-initial-cluster"},
		"not one of the members":    {[]string{"--store", "embedded", "--store-initial-cluster", "a=10.0.0.1:1", "--store-name", "b"}, nil, `--store embedded: this member (name "b", peer address "") is not in the store's initial cluster "a=10.0.0.1:1"`},
		"certificate that is not":   {[]string{"--etcd-ca", "/nonexistent", "--external-address", "127.0.0.1:0"}, nil, `--external-address: "127.0.0.1:0" has port "0", expected 1 to 65535`},
		"the first fault is told":   {[]string{"--mode", "x", "--infra", "cloud"}, nil, `--mode "x" is unknown, expected one of docker, kubernetes, swarm-mode, test`},
		"unknown option":            {[]string{"--verbose"}, nil, "unknown option --verbose"},
		"argument that is left out": {[]string{"--store-dir"}, nil, "option --store-dir needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv("CONTIV_NETMASTER_"+k, v)
			}
			status, _, stderr := execute(t.Context(), slices.Concat(modes, tt.args)...)
			if want := "netmaster: " + tt.want + " (see netmaster --help)\n"; status != cliconf.ExitUsage || stderr != want {
				t.Errorf("status %d, stderr %q; want 22, %q", status, stderr, want)
			}
		})
	}
}

// TestBadStoreFile: an option that only its use shows to be wrong is one all the same.
func TestBadStoreFile(t *testing.T) {
	ports := freePorts(t, 2)
	status, _, stderr := execute(t.Context(), slices.Concat(modes, []string{
		"--external-address", ports[0], "--internal-address", ports[0], "--rpc-address", ports[1], "--etcd-ca", filepath.Join(t.TempDir(), "none"), "--log-level", "panic",
	})...)
	if status != cliconf.ExitUsage || !strings.Contains(stderr, "certificate authority of etcd: open ") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	status, _, stderr := execute(t.Context(), slices.Concat(modes, []string{"--external-address", addr, "--internal-address", addr, "--log-level", "panic"})...)
	if want := fmt.Sprintf("netmaster: listen on %s: listen tcp %s: bind: address already in use\n", addr, addr); status != cliconf.ExitFailure || stderr != want {
		t.Errorf("status %d, stderr %q; want 1, %q", status, stderr, want)
	}
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, netxtest.FreeAddress(t))
	}
	return out
}

// node is a netmaster of a test.
type node struct {
	addr string
	rpc  string
	args []string
	stop context.CancelFunc
	done chan string // how it ended
}

func (n *node) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n.stop, n.done = cancel, make(chan string, 1)
	args := slices.Concat(modes, []string{"--external-address", n.addr, "--internal-address", n.addr, "--rpc-address", n.rpc, "--log-level", "panic"}, n.args)
	go func() {
		status, _, stderr := execute(ctx, args...)
		n.done <- fmt.Sprintf("%d %s", status, stderr)
	}()
	t.Cleanup(func() { n.halt(t) })
}

func (n *node) halt(t *testing.T) {
	t.Helper()
	if n.stop == nil {
		return
	}
	began := time.Now()
	n.stop()
	n.stop = nil
	if end := <-n.done; end != "0 " {
		t.Errorf("netmaster ended with %s", end)
	}
	t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
}

func (n *node) do(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func (n *node) ready(t *testing.T) {
	t.Helper()
	eventually.Succeeds(t, "netmaster is ready", func() error {
		if code, text := n.do(t, http.MethodGet, "/readyz", ""); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
}

// TestSingle: one netmaster with its own store, from nothing to a tenant that is there
// again after a restart.
func TestSingle(t *testing.T) {
	ports := freePorts(t, 3)
	n := &node{addr: ports[0], rpc: ports[2], args: []string{"--store", "embedded", "--store-dir", t.TempDir(), "--store-listen", ports[1]}}
	n.start(t)
	n.ready(t)
	if code, text := n.do(t, http.MethodPost, "/api/v1/tenants/blue/", `{"tenantName":"blue"}`); code != http.StatusOK {
		t.Fatalf("create tenant: %d %s", code, text)
	}
	n.halt(t)
	n.start(t)
	n.ready(t)
	if code, text := n.do(t, http.MethodGet, "/api/v1/tenants/blue/", ""); code != http.StatusOK || !strings.Contains(text, `"tenantName":"blue"`) {
		t.Errorf("after a restart: %d %s", code, text)
	}
}

// TestThree: three netmasters that are a store of three members; each serves, and two go
// on when the leader stops.
func TestThree(t *testing.T) {
	ports := freePorts(t, 12)
	var (
		nodes   []*node
		cluster []string
	)
	for i := range 3 {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, ports[6+i]))
	}
	for i := range 3 {
		n := &node{addr: ports[i], rpc: ports[9+i], args: []string{
			"--store", "embedded", "--store-dir", t.TempDir(), "--store-listen", ports[3+i],
			"--store-peer-listen", ports[6+i], "--store-name", fmt.Sprintf("m%d", i), "--store-initial-cluster", strings.Join(cluster, ","),
		}}
		n.start(t)
		nodes = append(nodes, n)
	}
	var wg sync.WaitGroup
	for i, n := range nodes {
		n.ready(t)
		wg.Go(func() {
			name := fmt.Sprintf("t%d", i)
			if code, text := n.do(t, http.MethodPost, "/api/v1/tenants/"+name+"/", fmt.Sprintf(`{"tenantName":%q}`, name)); code != http.StatusOK {
				t.Errorf("create tenant: %d %s", code, text)
			}
		})
	}
	wg.Wait()
	_, text := nodes[0].do(t, http.MethodGet, "/info", "")
	var info struct {
		Leader string `json:"leader-ip"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatalf("/info = %s: %v", text, err)
	}
	at := slices.IndexFunc(nodes, func(n *node) bool { return n.addr == info.Leader })
	if at < 0 {
		t.Fatalf("nobody is the leader %s", info.Leader)
	}
	nodes[at].halt(t)
	for _, n := range slices.Delete(slices.Clone(nodes), at, at+1) {
		n.ready(t)
		code, text := n.do(t, http.MethodGet, "/api/v1/tenants/", "")
		if code != http.StatusOK || strings.Count(text, `"tenantName":`) != 4 {
			t.Errorf("tenants after the leader's stop: %d %s", code, text)
		}
	}
}

func TestHelpNamesEveryVariable(t *testing.T) {
	status, help, _ := execute(t.Context(), "--help")
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	settings, err := os.ReadFile("../../scripts/systemd/netmaster.env")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(settings)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "#"), "=")
		if ok && strings.HasPrefix(name, "CONTIV_") && !strings.Contains(help, "$"+name+"]") {
			t.Errorf("the settings file names %s, which is no option", name)
		}
	}
}

func TestDefaultNetworkOptions(t *testing.T) {
	d := defaultNetwork{subnet: "20.1.0.0/16", subnet6: "fd00:20::/64"}
	n, err := d.network("vxlan")
	if err != nil || n.Gateway != "20.1.0.1" || n.IPv6Gateway != "fd00:20::1" || n.Encap != "vxlan" {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := (&defaultNetwork{}).network("vxlan"); n != nil || err != nil {
		t.Errorf("%+v, %v; expected no network", n, err)
	}
}
