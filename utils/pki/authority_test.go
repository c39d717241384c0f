package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/utils/pki"
)

func TestSign(t *testing.T) {
	a, now := authority(t), time.Now()
	csr, key, err := pki.NewRequest("what it says does not count")
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.Sign(csr, pki.Subject{Name: "node1", Unit: pki.UnitAgent}, now)
	if err != nil {
		t.Fatal(err)
	}
	c := credentials(t, pki.Stored{Cert: text, Key: key, Roots: pki.EncodeCertificates(a.Cert)})
	peer, err := c.Verify([]*x509.Certificate{c.Leaf()}, pki.UnitMaster, pki.UnitAgent)
	if err != nil || peer != (pki.Peer{Name: "node1", Unit: pki.UnitAgent}) {
		t.Errorf("%s, %v", peer, err)
	}
	if c.Leaf().IsCA || c.Leaf().NotAfter.Sub(now).Round(time.Minute) != pki.DefaultValid {
		t.Errorf("authority: %t, valid for %s", c.Leaf().IsCA, c.Leaf().NotAfter.Sub(now))
	}
	if at := pki.IssuedAt(c.Leaf()); !at.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("issued at %s, expected %s", at, now)
	}
}

func TestSignRefused(t *testing.T) {
	a := authority(t)
	good, _, err := pki.NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	agent := pki.Subject{Name: "node1", Unit: pki.UnitAgent}
	forged := forgedRequest(t)
	for _, tt := range []struct {
		name string
		csr  []byte
		s    pki.Subject
		says string
	}{
		{"nothing", nil, agent, "expected a certificate request"},
		{"half", good[:len(good)/2], agent, "expected a certificate request"},
		{"a certificate", pki.EncodeCertificates(a.Cert), agent, "expected a certificate request"},
		{"garbage", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}), agent, "certificate request:"},
		{"signature of another key", forged, agent, "certificate request:"},
		{"RSA", request(t, rsaKey(t)), agent, "P-256"},
		{"P-384", request(t, p384Key(t)), agent, "P-256"},
		{"no name", good, pki.Subject{Unit: pki.UnitAgent}, "expected a name"},
		{"unknown unit", good, pki.Subject{Name: "x", Unit: "root"}, "a unit"},
	} {
		if _, err := a.Sign(tt.csr, tt.s, time.Now()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.says)
		}
	}
}

func request(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// forgedRequest is a request whose signature has one bit changed.
func forgedRequest(t *testing.T) []byte {
	t.Helper()
	text, _, err := pki.NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

func rsaKey(t *testing.T) any {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func p384Key(t *testing.T) any {
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestParseAuthority(t *testing.T) {
	a, other := authority(t), authority(t)
	cert, key, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := pki.ParseAuthority(cert, key)
	if err != nil || again.Hash() != a.Hash() || again.Hash() == other.Hash() {
		t.Fatalf("hash %s, expected %s; %v", again.Hash(), a.Hash(), err)
	}
	_, otherKey, _ := other.PEM()
	leaf := issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent}, time.Now())
	for _, tt := range []struct {
		name      string
		cert, key []byte
		says      string
	}{
		{"no certificate", nil, key, "found none"},
		{"half a certificate", cert[:len(cert)/2], key, "found none"},
		{"no key", cert, nil, "private key"},
		{"half a key", cert, key[:len(key)/2], "private key"},
		{"another key", cert, otherKey, "does not belong"},
		{"no authority", leaf.Cert, leaf.Key, "not that of a certificate authority"},
	} {
		if _, err := pki.ParseAuthority(tt.cert, tt.key); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.says)
		}
	}
}

// TestCross: who believes the former authority only, and who believes the next one only,
// believe a certificate of the next one that is sent with the cross certificate.
func TestCross(t *testing.T) {
	former, next, other, now := authority(t), authority(t), authority(t), time.Now()
	cross, err := former.Cross(next.Cert, now)
	if err != nil {
		t.Fatal(err)
	}
	s := issue(t, next, pki.Subject{Name: "m1", Unit: pki.UnitMaster}, now)
	chain := append(parse(t, s.Cert), cross)
	for _, tt := range []struct {
		name  string
		roots *pki.Authority
		chain []*x509.Certificate
		ok    bool
	}{
		{"former, with cross", former, chain, true},
		{"former, without", former, chain[:1], false},
		{"next, with cross", next, chain, true},
		{"next, without", next, chain[:1], true},
		{"another, with cross", other, chain, false},
	} {
		c := pki.NewCredentials()
		if err := c.SetRoots(pki.EncodeCertificates(tt.roots.Cert)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Verify(tt.chain, pki.UnitMaster); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// The cross certificate is no authority for others.
	if _, err := next.Cross(other.Cert, now); err != nil {
		t.Fatal(err)
	}
	second, _ := next.Cross(other.Cert, now)
	far := append(parse(t, issue(t, other, pki.Subject{Name: "m1", Unit: pki.UnitMaster}, now).Cert), second, cross)
	c := pki.NewCredentials()
	if err := c.SetRoots(pki.EncodeCertificates(former.Cert)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(far, pki.UnitMaster); err == nil {
		t.Error("two cross certificates in a row are believed")
	}
}

// TestShortLives: a certificate's times hold for seconds as for months, and never go beyond
// those of its authority.
func TestShortLives(t *testing.T) {
	a, now := authority(t), time.Now()
	for _, valid := range []time.Duration{2 * time.Second, time.Minute, time.Hour, pki.DefaultValid} {
		leaf := parse(t, issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent, Valid: valid}, now).Cert)[0]
		want := now.Add(valid * 2 / 3)
		if d := pki.RenewAt(leaf).Sub(want); d.Abs() > time.Second {
			t.Errorf("valid for %s: to be renewed %s from two thirds", valid, d)
		}
	}
	leaf := parse(t, issue(t, a, pki.Subject{Name: "x", Unit: pki.UnitAgent, Valid: 2 * pki.AuthorityValid}, now).Cert)[0]
	if leaf.NotAfter.After(a.Cert.NotAfter) {
		t.Error("a certificate is valid longer than its authority")
	}
}
