package tlsport_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
	"github.com/contiv/netplugin/utils/tlsport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with the name of its client.
type server struct {
	addr          string
	creds         *pki.Credentials
	plain, turned atomic.Int64
	ca            *pki.Authority
}

func serve(t *testing.T, cfg tlsport.Config, policy pki.ClientPolicy) *server {
	t.Helper()
	ca := pkitest.Authority(t)
	s := &server{ca: ca, creds: pkitest.Credentials(t, ca, pki.UnitMaster, "m1")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	cfg.TLS, cfg.Credentials = pki.ServerConfig(s.creds, policy), s.creds
	cfg.Plain = func(net.Addr) { s.plain.Add(1) }
	cfg.Refused = func(net.Addr, error) { s.turned.Add(1) }
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "plain"
		if r.TLS != nil {
			who = "tls"
			if len(r.TLS.PeerCertificates) > 0 {
				who = pki.PeerOf(r.TLS.PeerCertificates[0]).String()
			}
		}
		_, _ = io.WriteString(w, who)
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})}
	tl := tlsport.Listen(l, cfg)
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(tl) }()
	t.Cleanup(func() { web.Close(); tl.Close(); <-done })
	return s
}

func client(t *testing.T, cfg *tls.Config) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: cfg}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func get(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// TestModes: who is served what in each mode.
func TestModes(t *testing.T) {
	for mode, want := range map[tlsport.Mode][3]string{
		tlsport.Off:     {"plain", "", ""},
		tlsport.Accept:  {"plain", "tls", "agent h1"},
		tlsport.Require: {"this port serves TLS only: use https:// (--tls require is set)\n", "tls", "agent h1"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			s := serve(t, tlsport.Config{Mode: mode}, pki.CertificateOptional)
			anonymous := pki.NewCredentials()
			roots, _, _ := s.ca.PEM()
			_ = anonymous.SetRoots(roots)
			for i, ask := range []func() (string, error){
				func() (string, error) { return get(client(t, nil), "http://"+s.addr) },
				func() (string, error) {
					return get(client(t, pki.ClientConfig(anonymous, pki.UnitMaster)), "https://"+s.addr)
				},
				func() (string, error) {
					return get(client(t, pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, "h1"), pki.UnitMaster)), "https://"+s.addr)
				},
			} {
				got, err := ask()
				if got != want[i] || (want[i] == "") != (err != nil) {
					t.Errorf("client %d: %q (%v), want %q", i, got, err, want[i])
				}
			}
			if n := s.plain.Load(); (n > 0) != (mode == tlsport.Accept) {
				t.Errorf("%d plain connections were reported", n)
			}
		})
	}
}

// TestCertificateRequired: without one, or with one of another authority, there is no
// handshake.
func TestCertificateRequired(t *testing.T) {
	s := serve(t, tlsport.Config{Mode: tlsport.Require}, pki.CertificateRequired)
	other, roots := pkitest.Authority(t), pkitest.Roots(s.ca)
	foreign := pkitest.Credentials(t, other, pki.UnitAgent, "h1")
	_ = foreign.SetRoots(roots)
	none := pki.NewCredentials()
	_ = none.SetRoots(roots)
	for name, c := range map[string]*pki.Credentials{"none": none, "foreign": foreign} {
		if got, err := get(client(t, pki.ClientConfig(c)), "https://"+s.addr); err == nil {
			t.Errorf("%s: served %q", name, got)
		}
	}
	if got, err := get(client(t, pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, "h1"))), "https://"+s.addr); err != nil || got != "agent h1" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRevoked: a stream of a client is cut when its certificate is revoked; those of others
// go on.
func TestRevoked(t *testing.T) {
	s := serve(t, tlsport.Config{Mode: tlsport.Require}, pki.CertificateOptional)
	stream := func(name string) *http.Response {
		resp, err := client(t, pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, name))).Get("https://" + s.addr + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		_, _ = io.ReadFull(resp.Body, make([]byte, len("agent "+name)))
		return resp
	}
	bad, good := stream("h1"), stream("h2")
	s.creds.SetRevoked(func(c *x509.Certificate) bool { return pki.PeerOf(c).Name == "h1" })
	if _, err := bad.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the stream of a revoked host goes on")
	}
	over := make(chan struct{})
	go func() { _, _ = good.Body.Read(make([]byte, 1)); close(over) }()
	if got, err := get(client(t, pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, "h2"))), "https://"+s.addr); err != nil || got != "agent h2" {
		t.Errorf("another host: %q, %v", got, err)
	}
	if got, err := get(client(t, pki.ClientConfig(pkitest.Credentials(t, s.ca, pki.UnitAgent, "h1"))), "https://"+s.addr); err == nil {
		t.Errorf("a revoked host is served %q", got)
	}
	select {
	case <-over:
		t.Error("the stream of another host was cut")
	default:
	}
	good.Body.Close()
	<-over
}

// TestIdleConnections: connections that say nothing take no place from others, and those of
// one address do not fill the port.
func TestIdleConnections(t *testing.T) {
	s := serve(t, tlsport.Config{Mode: tlsport.Accept, Handshake: time.Hour, Max: 100, MaxSource: 20}, pki.CertificateOptional)
	var idle []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	for range 30 {
		if got, err := get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+s.addr); err != nil || got != "plain" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := idle[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the oldest idle connection is open: %v", err)
	}
}

// TestHandshakeEnds: who says nothing is cut, and who says half.
func TestHandshakeEnds(t *testing.T) {
	s := serve(t, tlsport.Config{Mode: tlsport.Require, Handshake: 50 * time.Millisecond}, pki.CertificateOptional)
	for _, hello := range []string{"", "\x16\x03\x01"} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, hello); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", hello, err)
		}
	}
	eventually.True(t, "both are counted as refused", func() bool { return s.turned.Load() == 2 })
}
