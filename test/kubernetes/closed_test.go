//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/pki"
)

// closed: with the manifest as it is, nobody gets anything without a certificate or a login,
// from a node or with the token of another ServiceAccount; root in netmaster's pod does.
func closed(g guide) {
	out := g.follow(logins)
	for _, want := range []string{"host1", "host2"} {
		if !strings.Contains(out, want) {
			g.t.Errorf("%s is not among the hosts that have joined:\n%s", want, out)
		}
	}
	if password, _, _ := strings.Cut(strings.TrimSpace(lastLine(out)), " "); len(password) < 16 {
		g.t.Errorf("the first password is %q", password)
	}
	from, master, agent := g.Hosts()[1], g.Hosts()[0].ControlIP(), g.Hosts()[0].ControlIP()
	for url, want := range map[string]int{
		"https://" + master + ":9999/healthz":          http.StatusOK,
		"https://" + master + ":9999/version":          http.StatusOK,
		"https://" + master + ":9999/api/v1/networks/": http.StatusBadRequest,
		"https://" + master + ":9999/api/v1/watch":     http.StatusBadRequest,
		"https://" + master + ":9999/metrics":          http.StatusBadRequest,
		"https://" + agent + ":9090/healthz":           http.StatusOK,
		"https://" + agent + ":9090/inspect/driver":    http.StatusForbidden,
		"https://" + agent + ":9090/metrics":           http.StatusForbidden,
		"https://" + master + ":9001/reports/host1":    0,
		"https://" + agent + ":9002/status":            0,
		"https://" + master + ":6666/health":           0,
		"http://" + master + ":9999/api/v1/networks/":  http.StatusBadRequest,
		"http://" + agent + ":9090/inspect/driver":     http.StatusBadRequest,
		"http://" + master + ":6666/v3/kv/range":       http.StatusBadRequest,
	} {
		if got, body := g.ask(from, http.MethodGet, url, nil); got != want {
			g.t.Errorf("%s: status %d, expected %d: %s", url, got, want, body)
		}
	}
	// The API server says whose token it is, and on which node: this one may not join.
	foreign := g.kubectl("create", "token", "default", "--audience", securityapi.Audience)
	loose := g.kubectl("-n", "kube-system", "create", "token", "contiv-netplugin", "--audience", securityapi.Audience)
	other := g.kubectl("-n", "kube-system", "create", "token", "contiv-netplugin")
	for name, tt := range map[string]struct{ token, says string }{
		"another account":       {foreign, "cannot join hosts"},
		"of no pod":             {loose, "not bound to a pod"},
		"for another audience":  {other, "does not count"},
		"no token of a cluster": {"eyJ", "does not count"},
	} {
		csr, _, err := pki.NewRequest("host1")
		if err != nil {
			g.t.Fatal(err)
		}
		req := securityapi.JoinRequest{Host: "host1", CSR: string(csr), ServiceAccount: tt.token}
		if code, body := g.ask(from, http.MethodPost, "https://"+master+":9999"+securityapi.PathJoin, req); code < 400 || !strings.Contains(body, tt.says) {
			g.t.Errorf("%s: status %d, expected a refusal that says %q: %s", name, code, tt.says, body)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// ask sends a request from a host, without a certificate, and returns the status, 0 if there
// is no connection.
func (g guide) ask(from *lab.Host, method, url string, body any) (int, string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: from.Dial,
	}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

// secureEtcd runs an etcd on the first node that asks its clients for certificates, puts
// those of netmaster and agents where commands are typed, and returns its URL.
func (g guide) secureEtcd() (url string) {
	g.t.Helper()
	h := g.Hosts()[0]
	authority, err := pki.NewAuthority("etcd", time.Now())
	if err != nil {
		g.t.Fatal(err)
	}
	write := func(name string, text []byte) {
		g.t.Helper()
		if err := os.WriteFile(filepath.Join(g.work, name), text, 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
	write("ca.crt", pki.EncodeCertificates(authority.Cert))
	for name, unit := range map[string]pki.Unit{"server": pki.UnitMaster, "netmaster": pki.UnitMaster, "agent": pki.UnitAgent} {
		cert, key, err := authority.Issue(pki.Subject{Name: name, Unit: unit, IPs: []net.IP{net.ParseIP(h.ControlIP())}, Valid: time.Hour}, time.Now())
		if err != nil {
			g.t.Fatal(err)
		}
		write(name+".crt", cert)
		write(name+".key", key)
	}
	url = "https://" + net.JoinHostPort(h.ControlIP(), "2389")
	ctx, stop := context.WithCancel(context.WithoutCancel(g.t.Context()))
	var said bytes.Buffer
	var running sync.WaitGroup
	running.Go(func() {
		_ = h.Run(ctx, lab.Stdio{Out: &said, Err: &said}, "etcd", "--name", "secure", "--data-dir", "/var/lib/etcd/secure",
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:2390",
			"--initial-advertise-peer-urls", "http://127.0.0.1:2390", "--initial-cluster", "secure=http://127.0.0.1:2390",
			"--client-cert-auth", "--trusted-ca-file", g.work+"/ca.crt", "--cert-file", g.work+"/server.crt", "--key-file", g.work+"/server.key")
	})
	g.t.Cleanup(func() {
		stop()
		running.Wait()
		if g.t.Failed() {
			g.t.Logf("etcd said:\n%s", said.String())
		}
	})
	return url
}
