package etcd_test

import (
	"path/filepath"
	"testing"
	"time"

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

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return &process{
		Process: servertest.NewProcess(t, "etcd"), dir: filepath.Join(t.TempDir(), "data"),
		client: netxtest.FreeAddress(t), peer: netxtest.FreeAddress(t), scheme: "http", args: args,
	}
}

func (p *process) url() string { return p.scheme + "://" + p.client }

func (p *process) start(t *testing.T) {
	t.Helper()
	p.Start(t, "etcd", append([]string{
		"--data-dir", p.dir, "--listen-client-urls", p.url(), "--advertise-client-urls", p.url(),
		"--listen-peer-urls", "http://" + p.peer, "--initial-advertise-peer-urls", "http://" + p.peer,
		"--initial-cluster", "default=http://" + p.peer, "--logger", "zap", "--log-level", "error",
		"--heartbeat-interval", "10", "--election-timeout", "100",
	}, p.args...)...)
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
