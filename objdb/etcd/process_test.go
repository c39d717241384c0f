package etcd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// process is Debian's etcd server, with its data in a directory of the test.
type process struct {
	*servertest.Process
	dir, client, peer string
	scheme            string
	args              []string
}

func newProcess(t testing.TB, args ...string) *process {
	t.Helper()
	return &process{
		Process: servertest.NewProcess(t, "etcd"), dir: filepath.Join(t.TempDir(), "data"),
		client: netxtest.FreeAddress(t), peer: netxtest.FreeAddress(t), scheme: "http", args: args,
	}
}

func (p *process) URL() string { return p.scheme + "://" + p.client }

func (p *process) Start(t testing.TB) {
	t.Helper()
	p.Process.Start(t, "etcd", append([]string{
		"--data-dir", p.dir, "--listen-client-urls", p.URL(), "--advertise-client-urls", p.URL(),
		"--listen-peer-urls", "http://" + p.peer, "--initial-advertise-peer-urls", "http://" + p.peer,
		"--initial-cluster", "default=http://" + p.peer, "--logger", "zap", "--log-level", "error",
		"--heartbeat-interval", "10", "--election-timeout", "100",
	}, p.args...)...)
}

// connect makes a Store that is closed with the test.
func connect(t testing.TB, cfg etcd.Config) *etcd.Store {
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

func (p *process) Wipe(t testing.TB) {
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
}

func (p *process) Move(t testing.TB) (back func()) {
	old := p.client
	p.client = netxtest.FreeAddress(t)
	return func() { p.client = old }
}

var backend = servertest.Backend{
	Server:  func(t testing.TB) servertest.Server { return newProcess(t) },
	Connect: func(t testing.TB, url string) objdb.Store { return connect(t, etcd.Config{Endpoints: []string{url}}) },
}

// What tests share under shorter names.
const (
	patience = servertest.Patience
	root     = servertest.Root
)
