package consul_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb/consul"
)

// process is a Consul server, with its data in a directory of the test.
type process struct {
	binary, dir string
	scheme      string
	http        string
	rpc, serf   string // ports, the same after a restart: they are in the data
	extra       string // configuration in HCL
	cmd         *exec.Cmd
	log         bytes.Buffer
}

func newProcess(t testing.TB) *process {
	t.Helper()
	out, err := exec.Command("../../scripts/consul", "--path").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{binary: strings.TrimSpace(string(out)), dir: t.TempDir(), scheme: "http", http: freePort(t), rpc: freePort(t), serf: freePort(t)}
	if _, err := os.Stat(p.binary); err != nil {
		t.Fatalf("there is no Consul server, build it with scripts/consul: %v", err)
	}
	t.Cleanup(func() {
		p.stop(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("consul says:\n%s", p.log.String())
		}
	})
	return p
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (p *process) url() string { return p.scheme + "://127.0.0.1:" + p.http }

// start starts the server, alone in its cluster. It does not wait.
func (p *process) start(t testing.TB) {
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
	p.cmd = exec.Command(p.binary, "agent", "-config-file", config)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start consul: %v", err)
	}
}

func (p *process) stop(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // killed is what it is supposed to be
	p.cmd = nil
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

// patience is how long a test waits for what must happen before it fails.
const patience = 60 * time.Second
