package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

func TestVerify(t *testing.T) {
	a, other, now := authority(t), authority(t), time.Now()
	agent := pki.Subject{Name: "node1", Unit: pki.UnitAgent}
	cert := func(a *pki.Authority, s pki.Subject, at time.Time) []*x509.Certificate {
		return parse(t, issue(t, a, s, at).Cert)
	}
	short := agent
	short.Valid = time.Hour
	good := cert(a, agent, now)
	c := credentials(t, issue(t, a, pki.Subject{Name: "m1", Unit: pki.UnitMaster}, now))
	revoked := cert(a, pki.Subject{Name: "node2", Unit: pki.UnitAgent}, now)
	c.SetRevoked(func(cert *x509.Certificate) bool { return cert.SerialNumber.Cmp(revoked[0].SerialNumber) == 0 })
	for _, tt := range []struct {
		name  string
		chain []*x509.Certificate
		units []pki.Unit
		says  string // empty: in order
	}{
		{"in order", good, []pki.Unit{pki.UnitAgent}, ""},
		{"of any unit", good, nil, ""},
		{"of one of two units", good, []pki.Unit{pki.UnitMaster, pki.UnitAgent}, ""},
		{"none", nil, nil, "no certificate"},
		{"of another unit", good, []pki.Unit{pki.UnitMaster}, "expected one of unit [master]"},
		{"of another authority", cert(other, agent, now), nil, "unknown authority"},
		{"another authority along with it", []*x509.Certificate{cert(other, agent, now)[0], other.Cert}, nil, "unknown authority"},
		{"revoked", revoked, nil, "revoked"},
		{"expired", cert(a, short, now.Add(-2*time.Hour)), nil, "expired"},
		{"not valid yet", cert(a, agent, now.Add(2*time.Hour)), nil, "not yet valid"},
		{"made by a clock that is 10 minutes ahead", cert(a, agent, now.Add(10*time.Minute)), nil, ""},
		{"made by a clock that is 10 minutes behind", cert(a, agent, now.Add(-10*time.Minute)), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Verify(tt.chain, tt.units...)
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("%v, expected %q", err, tt.says)
			}
		})
	}
}

// TestBadInputChangesNothing: half-written PEM is refused, and what counted before counts on.
func TestBadInputChangesNothing(t *testing.T) {
	a := authority(t)
	s := issue(t, a, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, time.Now())
	other := issue(t, a, pki.Subject{Name: "node2", Unit: pki.UnitAgent}, time.Now())
	c := credentials(t, s)
	before := c.Leaf()
	for name, err := range map[string]error{
		"half a certificate": c.SetPair(s.Cert[:len(s.Cert)/2], s.Key),
		"half a key":         c.SetPair(s.Cert, s.Key[:len(s.Key)/2]),
		"nothing":            c.SetPair(nil, nil),
		"key of another":     c.SetPair(s.Cert, other.Key),
		"half a root":        c.SetRoots(s.Roots[:len(s.Roots)/2]),
		"no root":            c.SetRoots(nil),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if !c.Leaf().Equal(before) || len(c.Roots()) != 1 {
		t.Error("bad input has changed the credentials")
	}
}

func TestChanged(t *testing.T) {
	a := authority(t)
	c := credentials(t, issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent}, time.Now()))
	for name, change := range map[string]func(){
		"roots":       func() { _ = c.SetRoots(pki.EncodeCertificates(a.Cert)) },
		"revocations": func() { c.SetRevoked(nil) },
		"certificate": func() {
			s := issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent}, time.Now())
			_ = c.SetPair(s.Cert, s.Key)
		},
	} {
		changed := c.Changed()
		change()
		select {
		case <-changed:
		default:
			t.Errorf("nobody is told of new %s", name)
		}
	}
}

// handshake connects two ends, and returns what each says of it.
func handshake(t *testing.T, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.HandshakeContext(t.Context())
		if err != nil {
			_ = a.Close()
		} else {
			_, err = s.Write([]byte("x"))
		}
		done <- err
	}()
	atClient = c.HandshakeContext(t.Context())
	if atClient == nil {
		_, atClient = c.Read(make([]byte, 1)) // in TLS 1.3 a server refuses after the client is done
	}
	_ = b.Close()
	atServer = <-done
	_ = a.Close()
	return atServer, atClient
}

func TestHandshakes(t *testing.T) {
	a, other, now := authority(t), authority(t), time.Now()
	of := func(a *pki.Authority, name string, unit pki.Unit, at time.Time, valid time.Duration) *pki.Credentials {
		c := credentials(t, issue(t, a, pki.Subject{Name: name, Unit: unit, Valid: valid}, at))
		if err := c.SetRoots(pki.EncodeCertificates(a.Cert)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	master, agent := of(a, "m1", pki.UnitMaster, now, 0), of(a, "node1", pki.UnitAgent, now, 0)
	nobody := pki.NewCredentials()
	if err := nobody.SetRoots(pki.EncodeCertificates(a.Cert)); err != nil {
		t.Fatal(err)
	}
	revoking := of(a, "m1", pki.UnitMaster, now, 0)
	revoking.SetRevoked(func(c *x509.Certificate) bool { return pki.PeerOf(c).Name == "node1" })
	for _, tt := range []struct {
		name           string
		server, client *pki.Credentials
		policy         pki.ClientPolicy
		ok             bool
	}{
		{"agent and netmaster", master, agent, pki.CertificateRequired, true},
		{"no certificate, optional", master, nobody, pki.CertificateOptional, true},
		{"no certificate, required", master, nobody, pki.CertificateRequired, false},
		{"client of another authority", master, foreign(t, other, a, now), pki.CertificateOptional, false},
		{"expired client", master, of(a, "node1", pki.UnitAgent, now.Add(-3*time.Hour), time.Hour), pki.CertificateOptional, false},
		{"revoked client", revoking, agent, pki.CertificateOptional, false},
		{"client of another unit", master, of(a, "prometheus", pki.UnitMonitor, now, 0), pki.CertificateOptional, false},
		{"server of another authority", of(other, "m1", pki.UnitMaster, now, 0), agent, pki.CertificateOptional, false},
		{"server that is an agent", of(a, "node2", pki.UnitAgent, now, 0), agent, pki.CertificateOptional, false},
		{"expired server", of(a, "m1", pki.UnitMaster, now.Add(-3*time.Hour), time.Hour), agent, pki.CertificateOptional, false},
		{"server without a certificate", nobody, agent, pki.CertificateOptional, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			atServer, atClient := handshake(t, pki.ServerConfig(tt.server, tt.policy, pki.UnitAgent), pki.ClientConfig(tt.client, pki.UnitMaster))
			if ok := atServer == nil && atClient == nil; ok != tt.ok {
				t.Errorf("server: %v, client: %v; expected success: %t", atServer, atClient, tt.ok)
			}
		})
	}
}

// foreign returns a client with a certificate of one authority that believes another one.
func foreign(t *testing.T, of, believes *pki.Authority, now time.Time) *pki.Credentials {
	t.Helper()
	c := credentials(t, issue(t, of, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, now))
	if err := c.SetRoots(pki.EncodeCertificates(believes.Cert)); err != nil {
		t.Fatal(err)
	}
	return c
}
