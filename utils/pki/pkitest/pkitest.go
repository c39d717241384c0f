// Package pkitest makes certificates for tests.
package pkitest

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

// Pair is a certificate of a server, with the authority that has signed it; all PEM.
type Pair struct{ CA, Certificate, Key string }

// For makes a certificate for a name and 127.0.0.1.
func For(t testing.TB, name string) Pair {
	t.Helper()
	authority, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Sign(csr, pki.Subject{Name: name, Unit: pki.UnitMaster, Names: []string{name}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return Pair{string(root), string(certificate), string(key)}
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
