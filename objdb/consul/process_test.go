package consul_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// process is a Consul server, with its data in a directory of the test.
type process struct {
	*servertest.Process
	binary, dir string
	scheme      string
	http        string
	rpc, serf   string // ports, the same after a restart: they are in the data
	extra       string // configuration in HCL
}

func newProcess(t testing.TB) *process {
	t.Helper()
	out, err := exec.Command("../../scripts/consul", "--path").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		Process: servertest.NewProcess(t, "consul"), binary: strings.TrimSpace(string(out)), dir: t.TempDir(), scheme: "http",
		http: netxtest.FreePort(t), rpc: netxtest.FreePort(t), serf: netxtest.FreePort(t),
	}
	if _, err := os.Stat(p.binary); err != nil {
		t.Fatalf("there is no Consul server, build it with scripts/consul: %v", err)
	}
	return p
}

func (p *process) URL() string { return p.scheme + "://127.0.0.1:" + p.http }

// Start starts the server, alone in its cluster. It does not wait.
func (p *process) Start(t testing.TB) {
	t.Helper()
	ports := fmt.Sprintf("%s = %s\nserver = %s\nserf_lan = %s\n", p.scheme, p.http, p.rpc, p.serf)
	if p.scheme == "https" {
		ports += "http = -1\n"
	}
	config := filepath.Join(p.dir, "consul.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
data_dir = %q
node_name = "one"
server = true
bootstrap_expect = 1
bind_addr = "127.0.0.1"
disable_update_check = true
log_level = "error"
performance { raft_multiplier = 1 }
ports {
  dns = -1
  grpc = -1
  grpc_tls = -1
  serf_wan = -1
  %s
}
%s
`, filepath.Join(p.dir, "data"), ports, p.extra), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Process.Start(t, p.binary, "agent", "-config-file", config)
}

// connect makes a Store that is closed with the test.
func connect(t testing.TB, cfg consul.Config) *consul.Store {
	t.Helper()
	s, err := consul.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (p *process) Wipe(t testing.TB) {
	if err := os.RemoveAll(filepath.Join(p.dir, "data")); err != nil {
		t.Fatal(err)
	}
}

func (p *process) Move(t testing.TB) (back func()) {
	old := p.http
	p.http = netxtest.FreePort(t)
	return func() { p.http = old }
}

var backend = servertest.Backend{
	Server:   func(t testing.TB) servertest.Server { return newProcess(t) },
	Connect:  func(t testing.TB, url string) objdb.Store { return connect(t, consul.Config{Endpoints: []string{url}}) },
	Parallel: true,
}

// What tests share under shorter names.
const (
	patience = servertest.Patience
	root     = servertest.Root
)
