// Package pkitest makes certificates for tests.
package pkitest

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

// Authority makes an authority.
func Authority(t testing.TB) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Roots are those of an authority, PEM.
func Roots(a *pki.Authority) []byte { return pki.EncodeCertificates(a.Cert) }

// Credentials have a certificate of an authority, which they trust.
func Credentials(t testing.TB, a *pki.Authority, unit pki.Unit, name string) *pki.Credentials {
	t.Helper()
	certificate, key, err := a.Issue(pki.Subject{Name: name, Unit: unit}, time.Now())
	creds := pki.NewCredentials()
	if err := errors.Join(err, creds.SetPair(certificate, key), creds.SetRoots(Roots(a))); err != nil {
		t.Fatal(err)
	}
	return creds
}

// Pair is a certificate of a server, with the authority that has signed it; all PEM.
type Pair struct{ CA, Certificate, Key string }

// For makes a certificate for a name and 127.0.0.1.
func For(t testing.TB, name string) Pair {
	t.Helper()
	a := Authority(t)
	certificate, key, err := a.Issue(pki.Subject{Name: name, Unit: pki.UnitMaster, Names: []string{name}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return Pair{string(Roots(a)), string(certificate), string(key)}
}

// TLS is the configuration of a server with the certificate.
func (p Pair) TLS(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}
