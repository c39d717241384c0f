package systemtests

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// ownStore is a store that is not Contiv's, asks its clients for certificates, and tells
// them apart.
type ownStore struct {
	cluster
	host  *lab.Host
	files string // folder with ca.pem, and NAME.pem and NAME.key of root, agent and server
	// flags are those of a daemon that is known to the store as root or as agent.
	flags func(as string) []string
	// withdraw takes the rights of agents, grant gives them back.
	withdraw, grant func()
}

// prepare makes the store's certificates.
func prepare(c cluster) *ownStore {
	c.t.Helper()
	s := &ownStore{cluster: c, host: c.Hosts()[0], files: c.t.TempDir()}
	authority, err := pki.NewAuthority("store", time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	s.write("ca.pem", pki.EncodeCertificates(authority.Cert))
	for name, user := range map[string]string{"server": "server", "root": "root", "agent": "contiv-agent"} {
		subject := pki.Subject{Name: user, Unit: pki.UnitMaster, IPs: []net.IP{net.ParseIP(s.host.ControlIP())}, Valid: time.Hour}
		cert, key, err := authority.Issue(subject, time.Now())
		if err != nil {
			c.t.Fatal(err)
		}
		s.write(name+".pem", cert)
		s.write(name+".key", key)
	}
	return s
}

func (s *ownStore) file(name string) string { return filepath.Join(s.files, name) }

func (s *ownStore) write(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.file(name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// serve runs the store's server on its host until the test ends.
func (s *ownStore) serve(command ...string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var said bytes.Buffer
	var running sync.WaitGroup
	running.Go(func() { _ = s.host.Run(ctx, lab.Stdio{Out: &said, Err: &said}, command...) })
	s.t.Cleanup(func() {
		stop()
		running.Wait()
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", command[0], tail(said.String()))
		}
	})
}

// grantByCommand lets agents read as docs/security.md says.
func (s *ownStore) grantByCommand(env ...string) {
	s.t.Helper()
	s.eventually("the store can be told what agents read", func() error {
		_, err := s.Output(s.t.Context(), s.host.Name, append(append([]string{"env"}, env...), append(append([]string{"netmaster"}, s.flags("root")...), "store", "grant")...)...)
		return err
	})
}

// ownEtcd is an etcd with client certificates and roles.
func ownEtcd(c cluster) *ownStore {
	c.t.Helper()
	s := prepare(c)
	url, peer := "https://"+net.JoinHostPort(s.host.ControlIP(), "2389"), "http://127.0.0.1:2390"
	s.serve("etcd", "--name", "own", "--data-dir", "/var/lib/etcd/own", "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "own="+peer,
		"--client-cert-auth", "--trusted-ca-file", s.file("ca.pem"), "--cert-file", s.file("server.pem"), "--key-file", s.file("server.key"))
	s.flags = func(as string) []string {
		return []string{"--etcd-endpoints", url, "--etcd-ca", s.file("ca.pem"), "--etcd-cert", s.file(as + ".pem"), "--etcd-key", s.file(as + ".key")}
	}
	s.grantByCommand()
	root := s.etcdClient(url, "root")
	const agent = "contiv-agent"
	s.must(func(ctx context.Context) error {
		_, err := root.UserAddWithOptions(ctx, "root", "", &clientv3.UserAddOptions{NoPassword: true})
		return err
	})
	s.must(func(ctx context.Context) error { _, err := root.RoleAdd(ctx, "root"); return err })
	s.must(func(ctx context.Context) error { _, err := root.UserGrantRole(ctx, "root", "root"); return err })
	s.must(func(ctx context.Context) error { _, err := root.AuthEnable(ctx); return err })
	s.withdraw = func() {
		s.must(func(ctx context.Context) error { _, err := root.UserRevokeRole(ctx, agent, agent); return err })
	}
	s.grant = func() {
		s.must(func(ctx context.Context) error { _, err := root.UserGrantRole(ctx, agent, agent); return err })
	}
	return s
}

func (s *ownStore) must(do func(ctx context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	if err := do(ctx); err != nil {
		s.t.Fatal(err)
	}
}

func (s *ownStore) etcdClient(url, as string) *clientv3.Client {
	s.t.Helper()
	creds := pki.NewCredentials()
	if err := (pki.Files{CA: s.file("ca.pem"), Cert: s.file(as + ".pem"), Key: s.file(as + ".key")}).Load(creds); err != nil {
		s.t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, TLS: pki.ClientConfig(creds, pki.UnitMaster),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.host.Dial(ctx, "tcp", address)
		})},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	return client
}

// ownConsul is a Consul with ACLs.
func ownConsul(c cluster) *ownStore {
	c.t.Helper()
	s := prepare(c)
	const management, agent = "6f1b4b1c-7d4c-4ad3-8c37-3a3d1f0f3c11", "0b7d1a52-1c86-4f0b-9f5c-4b1a0e8d2f10"
	url := "https://" + net.JoinHostPort(s.host.ControlIP(), "8601")
	s.write("consul.hcl", fmt.Appendf(nil, `
disable_update_check = true
performance { raft_multiplier = 1 }
ports { http = -1, https = 8601, server = 8700, serf_lan = 8701, serf_wan = -1, dns = -1, grpc = -1, grpc_tls = -1 }
tls { https { ca_file = %q, cert_file = %q, key_file = %q, verify_incoming = true } }
acl { enabled = true, default_policy = "deny", tokens { initial_management = %q } }
`, s.file("ca.pem"), s.file("server.pem"), s.file("server.key"), management))
	s.serve(lab.ConsulBinary(), "agent", "-server", "-bootstrap-expect=1", "-node", "own", "-data-dir", "/var/lib/consul/own",
		"-bind", s.host.ControlIP(), "-client", s.host.ControlIP(), "-log-level", "warn", "-config-file", s.file("consul.hcl"))
	tokens := map[string]string{"root": management, "agent": agent}
	s.flags = func(as string) []string {
		return []string{"--consul-endpoints", url, "--consul-token", tokens[as], "--consul-ca", s.file("ca.pem"), "--consul-cert", s.file(as + ".pem"), "--consul-key", s.file(as + ".key")}
	}
	ask := func(method, path, body string) string {
		return s.run(s.host.Name, fmt.Sprintf("curl -sS --fail-with-body --cacert %s --cert %s --key %s -H 'X-Consul-Token: %s' -X %s %s%s -d '%s'",
			s.file("ca.pem"), s.file("root.pem"), s.file("root.key"), management, method, url, path, body))
	}
	s.grantByCommand()
	ask("PUT", "/v1/acl/token", `{"SecretID": "`+agent+`", "Policies": [{"Name": "contiv-agent"}]}`)
	s.grant = func() { s.grantByCommand() }
	s.withdraw = func() {
		_, id, _ := strings.Cut(ask("GET", "/v1/acl/policy/name/contiv-agent", ""), `"ID":"`)
		id, _, _ = strings.Cut(id, `"`)
		ask("PUT", "/v1/acl/policy/"+id, `{"Name": "contiv-agent", "Rules": "key_prefix \"other/\" { policy = \"read\" }"}`)
	}
	return s
}

// TestStoreOfOnesOwn: with an etcd or a Consul that tells its clients apart, agents only read.
// When that right is taken, flows stay, also across a restart of the agent, which says what it
// may not do; when it is given back, all goes on.
func TestStoreOfOnesOwn(t *testing.T) {
	for kind, open := range map[string]func(cluster) *ownStore{lab.StoreEtcd: ownEtcd, lab.StoreConsul: ownConsul} {
		t.Run(kind, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, Store: kind})
			s := open(c)
			c.closeWith(s)
			c.netctlOn("host1", "net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
			c.attach("host1", "a", "net")
			b := c.attach("host2", "b", "net")
			c.reaches("a", b.IPv4)
			noneLost, flows := c.watch("a", b.IPv4), c.flows("host2", vxlanBridge)

			s.withdraw()
			if kind == lab.StoreConsul { // etcd checks a watch when it begins
				c.refusedByStore("host2")
			}
			h, _ := c.Host("host2")
			if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			started := make(chan error, 1)
			go func() { started <- h.StartDaemon(t.Context(), "netplugin", s.agentFlags()...) }()
			c.refusedByStore("host2")
			if diff := cmp.Diff(flows, c.flows("host2", vxlanBridge)); diff != "" {
				t.Errorf("flows without the right to read (-before +after):\n%s", diff)
			}
			s.grant()
			if err := <-started; err != nil {
				t.Fatal(err)
			}
			noneLost()
			late := c.attach("host2", "late", "net")
			c.reaches("a", late.IPv4)
		})
	}
}

// closeWith restarts all daemons with the store and TLS.
func (c cluster) closeWith(s *ownStore) {
	c.t.Helper()
	c.again("host1", "netmaster", append(s.flags("root"), "--tls", string(tlsport.Require))...)
	c.run("host2", "umask 077; mkdir -p /etc/contiv; cat >/etc/contiv/join-token <<END\n"+c.netctlOn("host1", "host", "token", "create")+"END")
	for _, h := range c.Hosts() {
		c.again(h.Name, "netplugin", s.agentFlags()...)
	}
}

func (s *ownStore) agentFlags() []string {
	return append(s.flags("agent"), "--tls", string(tlsport.Require), "--netmaster", "https://"+s.host.ControlIP()+":9999")
}

// refusedByStore waits until the agent of a host says that it may not read the store.
func (c cluster) refusedByStore(host string) {
	c.t.Helper()
	c.eventually("the agent of "+host+" is not ready, and says why", func() error {
		out, err := c.Output(c.t.Context(), host, "curl", "-sk", "https://127.0.0.1:9090/readyz")
		if err == nil && !strings.Contains(strings.ToLower(out), "permission denied") {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
}
