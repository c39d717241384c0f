package etcd_test

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb/etcd"
)

// process is Debian's etcd server, with its data in a directory of the test.
type process struct {
	dir, client, peer string
	scheme            string
	args              []string
	cmd               *exec.Cmd
	log               bytes.Buffer
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{dir: filepath.Join(t.TempDir(), "data"), client: freePort(t), peer: freePort(t), scheme: "http", args: args}
	t.Cleanup(func() {
		p.stop(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("etcd says:\n%s", p.log.String())
		}
	})
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (p *process) url() string { return p.scheme + "://" + p.client }

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command("etcd", append([]string{
		"--data-dir", p.dir, "--listen-client-urls", p.url(), "--advertise-client-urls", p.url(),
		"--listen-peer-urls", "http://" + p.peer, "--initial-advertise-peer-urls", "http://" + p.peer,
		"--initial-cluster", "default=http://" + p.peer, "--logger", "zap", "--log-level", "error",
		"--heartbeat-interval", "10", "--election-timeout", "100",
	}, p.args...)...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start etcd (Debian package etcd-server): %v", err)
	}
}

func (p *process) stop(t *testing.T, sig syscall.Signal) {
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
func connect(t *testing.T, cfg etcd.Config) *etcd.Store {
	t.Helper()
	s, err := etcd.New(cfg)
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
const patience = 40 * time.Second
