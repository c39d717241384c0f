package systemtests

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// asHost returns the credentials that the agent of a host has.
func (c cluster) asHost(name string) *pki.Credentials {
	c.t.Helper()
	h, err := c.Host(name)
	if err != nil {
		c.t.Fatal(err)
	}
	creds, err := h.AgentCredentials()
	if err != nil {
		c.t.Fatal(err)
	}
	return creds
}

// knowing returns credentials that know the cluster's authority and have no certificate.
func knowing(t *testing.T, creds *pki.Credentials) *pki.Credentials {
	t.Helper()
	stranger := pki.NewCredentials()
	if err := stranger.SetRoots(pki.EncodeCertificates(creds.Roots()...)); err != nil {
		t.Fatal(err)
	}
	return stranger
}

// client sends requests over TLS from a host.
func (c cluster) client(from string, creds *pki.Credentials) *http.Client {
	c.t.Helper()
	h, err := c.Host(from)
	if err != nil {
		c.t.Fatal(err)
	}
	tr := &http.Transport{DialContext: h.Dial, DisableKeepAlives: true, TLSClientConfig: pki.ClientConfig(creds)}
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// send sends a request and returns status and text of the answer.
func (c cluster) send(client *http.Client, method, url string, body any, header ...string) (int, string, error) {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(answer)), err
}

// handshake reports whether a TLS connection from a host comes about.
func (c cluster) handshake(from, address string, creds *pki.Credentials) error {
	c.t.Helper()
	h, err := c.Host(from)
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := h.Dial(c.t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := tls.Client(raw, pki.ClientConfig(creds))
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if err := conn.HandshakeContext(c.t.Context()); err != nil {
		return err
	}
	// In TLS 1.3 a server refuses a certificate after the client's handshake is over.
	if _, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// TestSecured: in a cluster that is closed, everything works, and nobody without an identity
// gets further than the handshake, or the word that one is needed.
func TestSecured(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, TLS: tlsport.Require})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	a, b, third := c.attach("host1", "a", "net"), c.attach("host2", "b", "net"), c.attach("host3", "c", "net")
	c.reaches("a", b.IPv4)
	c.reaches("b", third.IPv4)
	c.reaches("c", a.IPv4)
	host2, stranger := c.asHost("host2"), knowing(t, c.asHost("host2"))
	master := lab.ControlIP(1).String()

	t.Run("ports", func(t *testing.T) { cluster{c.Lab, t}.testPorts(stranger) })
	t.Run("plain HTTP is refused with a clear word", func(t *testing.T) {
		h, _ := c.Host("host2")
		status, text, err := cluster{c.Lab, t}.send(h.HTTP(), http.MethodGet, "http://"+master+":9999/api/v1/networks/", nil)
		if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "use https://") {
			t.Errorf("%d %q %v", status, text, err)
		}
	})
	t.Run("a stranger learns nothing", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for path, want := range map[string]int{
			"/api/v1/networks/": http.StatusBadRequest, "/info": http.StatusBadRequest, "/metrics": http.StatusBadRequest,
			"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/api/v1/auth_proxy/version/": http.StatusOK,
		} {
			status, text, err := c.send(c.client("host2", stranger), http.MethodGet, "https://"+master+":9999"+path, nil)
			if err != nil || status != want {
				t.Errorf("%s: %d %q %v, want %d", path, status, text, err, want)
			}
		}
	})
	t.Run("a host reports for itself", func(t *testing.T) {
		c := cluster{c.Lab, t}
		report := clusterapi.Report{Host: "host3", Instance: 1 << 62, Sequence: 1}
		status, text, err := c.send(c.client("host2", host2), http.MethodPost, "https://"+master+":9001"+clusterapi.PathReport, report)
		if err != nil || status != http.StatusForbidden {
			t.Errorf("host2 reports as host3: %d %q %v", status, text, err)
		}
	})
	t.Run("a host deletes its own endpoints", func(t *testing.T) {
		c := cluster{c.Lab, t}
		del := masterapi.DeleteEndpointRequest{TenantName: "default", NetworkName: "net", EndpointID: third.ContainerID}
		status, text, err := c.send(c.client("host2", host2), http.MethodPost, "https://"+master+":9999"+masterapi.PathDeleteEndpoint, del)
		if err != nil || status != http.StatusForbidden {
			t.Errorf("host2 deletes an endpoint of host3: %d %q %v", status, text, err)
		}
		c.reaches("b", third.IPv4)
	})
	t.Run("a host reads the store, and only what it needs", func(t *testing.T) { cluster{c.Lab, t}.testStoreRights("host2", host2) })
	t.Run("a host asks other agents nothing", func(t *testing.T) {
		c := cluster{c.Lab, t}
		url := "https://" + lab.ControlIP(3).String() + ":9090/inspect/driver"
		if status, _, err := c.send(c.client("host2", host2), http.MethodGet, url, nil); err != nil || status != http.StatusForbidden {
			t.Errorf("status %d, %v", status, err)
		}
	})
	t.Run("the audit log is counted", func(t *testing.T) {
		out := cluster{c.Lab, t}.run("host1", "curl -s --unix-socket /run/contiv/netmaster.sock http://netmaster/metrics")
		for _, name := range []string{"contiv_netmaster_audit_records_total", "contiv_netmaster_audit_dropped_total"} {
			if !strings.Contains(out, "\n"+name+" ") {
				t.Errorf("netmaster does not export %s", name)
			}
		}
	})
	t.Run("containers do not get as far as a handshake", func(t *testing.T) { cluster{c.Lab, t}.testFromContainer("a") })
	t.Run("ten thousand idle connections", func(t *testing.T) { cluster{c.Lab, t}.testIdle(host2) })
	t.Run("join tokens are good once", func(t *testing.T) { cluster{c.Lab, t}.testJoinToken(stranger) })
	t.Run("a revoked host is cut off", func(t *testing.T) { cluster{c.Lab, t}.testRevoked(a, third) })
}

// testPorts holds that no port of a host talks to who has no certificate, but for health and
// login.
func (c cluster) testPorts(stranger *pki.Credentials) {
	for _, port := range []string{"2379", "9001", "9002", "9003"} {
		if err := c.handshake("host2", net.JoinHostPort(lab.ControlIP(1).String(), port), stranger); err == nil {
			c.t.Errorf("port %s of host1 talks to a stranger", port)
		}
	}
	status, text, err := c.send(c.client("host2", stranger), http.MethodGet, "https://"+lab.ControlIP(3).String()+":9090/inspect/driver", nil)
	if err != nil || status != http.StatusForbidden {
		c.t.Errorf("port 9090 of host3: %d %q %v", status, text, err)
	}
}

// testFromContainer holds that a container connects to no port of store, netmaster and agents, by
// any host's address, and to other ports as ever.
func (c cluster) testFromContainer(name string) {
	const free = 8080
	var addresses []string
	for _, h := range c.Hosts() {
		c.listens(h.Name, free)
		addresses = append(addresses, h.ControlIP())
	}
	c.eventually("there is a way to other ports", func() error {
		if open := c.connected(name, addresses, free); len(open) != len(addresses) {
			return fmt.Errorf("of %v only to %v", addresses, open)
		}
		return nil
	})
	if open := c.connected(name, addresses, 2379, 2380, 9001, 9002, 9003, 9090, 9999); len(open) > 0 {
		c.t.Errorf("%s connects to %s", name, strings.Join(open, ", "))
	}
}

// testIdle holds that netmaster serves others while one host has ten thousand connections open on
// which it says nothing, half of them in the middle of a handshake.
func (c cluster) testIdle(creds *pki.Credentials) {
	const many = 10000
	h, err := c.Host("host3")
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range many {
		conn, err := h.Dial(c.t.Context(), "tcp", lab.ControlIP(1).String()+":9999")
		if err != nil {
			c.t.Fatalf("connection %d: %v", i, err)
		}
		c.t.Cleanup(func() { conn.Close() })
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "\x16\x03\x01\x02\x00") // netmaster may have closed it
		}
	}
	for from, want := range map[string]int{"host2": http.StatusOK, "host3": http.StatusOK} {
		status, text, err := c.send(c.client(from, creds), http.MethodGet, "https://"+lab.ControlIP(1).String()+":9999/readyz", nil)
		if err != nil || status != want {
			c.t.Errorf("netmaster is asked from %s: %d %q %v", from, status, text, err)
		}
	}
	c.netctl("net", "ls")
	late := c.attach("host2", "while-idle", "net")
	c.reaches("a", late.IPv4)
}

// testStoreRights holds that the agent of a host can read its state from the store, and can
// neither write nor read more.
func (c cluster) testStoreRights(name string, creds *pki.Credentials) {
	h, err := c.Host(name)
	if err != nil {
		c.t.Fatal(err)
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { proxy.Close() })
	go forward(c.t.Context(), proxy, func(ctx context.Context) (net.Conn, error) {
		return h.Dial(ctx, "tcp", lab.ControlIP(1).String()+":2379")
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + proxy.Addr().String()}, TLS: pki.ClientConfig(creds, pki.UnitMaster)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	if resp, err := client.Get(ctx, "/contiv.io/state/nets/", clientv3.WithPrefix()); err != nil || resp.Count == 0 {
		c.t.Errorf("read the networks: %v", err)
	}
	for what, try := range map[string]func() error{
		"put":   func() error { _, err := client.Put(ctx, "/contiv.io/state/x", "y"); return err },
		"lease": func() error { _, err := client.Grant(ctx, 10); return err },
		"snapshot": func() error {
			r, err := client.Snapshot(ctx)
			if err == nil {
				_, err = r.Read(make([]byte, 1))
			}
			return err
		},
		"enable auth":   func() error { _, err := client.AuthEnable(ctx); return err },
		"read objects":  func() error { _, err := client.Get(ctx, "/contiv.io/obj/", clientv3.WithPrefix()); return err },
		"read users":    func() error { _, err := client.Get(ctx, "/contiv.io/auth/", clientv3.WithPrefix()); return err },
		"read all":      func() error { _, err := client.Get(ctx, "\x00", clientv3.WithFromKey()); return err },
		"add a member":  func() error { _, err := client.MemberAdd(ctx, []string{"http://10.0.0.1:1"}); return err },
		"watch objects": func() error { return watchError(client.Watch(ctx, "/contiv.io/obj/", clientv3.WithPrefix())) },
		"watch all":     func() error { return watchError(client.Watch(ctx, "/", clientv3.WithFromKey())) },
		"delete a state": func() error {
			_, err := client.Delete(ctx, "/contiv.io/state/nets/", clientv3.WithPrefix())
			return err
		},
	} {
		err := try()
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "denied") {
			c.t.Errorf("%s: %v, expected that it is denied", what, err)
		}
	}
}

func watchError(w clientv3.WatchChan) error {
	resp := <-w
	return resp.Err()
}

// forward passes connections on until its listener is closed.
func forward(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error)) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := dial(ctx)
			if err != nil {
				return
			}
			defer out.Close()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			_, _ = io.Copy(in, out)
		}()
	}
}

// testJoinToken holds that a token is good for one certificate, and a wrong one for none.
func (c cluster) testJoinToken(stranger *pki.Credentials) {
	parts := strings.Split(strings.TrimSpace(c.netctl("host", "token", "create")), ".")
	if len(parts) != 4 {
		c.t.Fatalf("token has %d parts", len(parts))
	}
	join := func(id, secret string) int {
		// A key of its own: who repeats a request, as its answer was lost, is answered again.
		csr, _, err := pki.NewRequest("host9")
		if err != nil {
			c.t.Fatal(err)
		}
		req := securityapi.JoinRequest{ID: id, Secret: secret, Host: "host9", CSR: string(csr)}
		status, text, err := c.send(c.client("host2", stranger), http.MethodPost, "https://"+lab.ControlIP(1).String()+":9999"+securityapi.PathJoin, req)
		if err != nil {
			c.t.Fatal(err)
		}
		if status != http.StatusOK && !strings.Contains(text, "token") {
			c.t.Errorf("refused with %q", text)
		}
		return status
	}
	for _, try := range []struct {
		id, secret string
		want       bool
	}{{parts[2], parts[3] + "x", false}, {"none", parts[3], false}, {parts[2], parts[3], true}, {parts[2], parts[3], false}} {
		if got := join(try.id, try.secret); (got == http.StatusOK) != try.want {
			c.t.Errorf("join with %+v: %d", try, got)
		}
	}
}

// testRevoked holds that a host whose certificate is revoked is cut off at once, and that its
// containers go on talking.
func (c cluster) testRevoked(a, onRevoked lab.Container) {
	creds := c.asHost("host3")
	noneLost := c.watch("a", onRevoked.IPv4)
	began := time.Now()
	c.netctl("host", "revoke", "host3")
	c.eventually("port 9999 refuses host3", func() error {
		if err := c.handshake("host3", lab.ControlIP(1).String()+":9999", creds); err == nil {
			return errors.New("it is served")
		}
		return nil
	})
	c.eventually("the agent of host3 is not ready", func() error {
		out, err := c.Output(c.t.Context(), "host3", "curl", "-sk", "https://127.0.0.1:9090/readyz")
		if err == nil && strings.Contains(out, `"ready":true`) {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	c.t.Logf("cut off %s after the command began", time.Since(began).Round(time.Millisecond))
	noneLost()
	c.reaches("c", a.IPv4)
}
