package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"sync"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Credentials are what a process shows to others, and whom it believes. They change while
// connections are made of them: a new certificate counts for the next handshake, and a
// revocation for connections that are open as well. Safe for concurrent use.
type Credentials struct {
	mu      sync.Mutex
	pair    *tls.Certificate // nil: none yet
	roots   []*x509.Certificate
	pool    *x509.CertPool // of roots; never changed, but replaced
	revoked func(*x509.Certificate) bool
	changed signal.Signal
}

// NewCredentials returns credentials without a certificate, which believe nobody.
func NewCredentials() *Credentials { return &Credentials{pool: x509.NewCertPool()} }

// SetPair sets the certificate, with intermediate ones after it, and its private key, in
// PEM. The error's kind is Invalid; the credentials are then as before.
func (c *Credentials) SetPair(certPEM, keyPEM []byte) error {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return errs.New(errs.Invalid, "certificate and private key: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pair = &pair
	c.changed.Broadcast()
	return nil
}

// SetRoots sets the authorities that are believed, in PEM; several while they change. The
// error's kind is Invalid; the credentials are then as before.
func (c *Credentials) SetRoots(text []byte) error {
	roots, err := ParseCertificates(text)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots, c.pool = roots, pool
	c.changed.Broadcast()
	return nil
}

// SetRevoked sets what tells certificates that do not count any more. It is asked at every
// handshake, and again whenever SetRevoked is called.
func (c *Credentials) SetRevoked(revoked func(*x509.Certificate) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked = revoked
	c.changed.Broadcast()
}

// Leaf returns the certificate in use; nil: none.
func (c *Credentials) Leaf() *x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair == nil {
		return nil
	}
	return c.pair.Leaf
}

// Roots returns the authorities that are believed.
func (c *Credentials) Roots() []*x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roots
}

// PairPEM returns the certificate, with intermediate ones after it, and the private key, in
// PEM, for a library that reads them from files. The error's kind is Unavailable while there
// are none.
func (c *Credentials) PairPEM() (certPEM, keyPEM []byte, err error) {
	pair, err := c.current()
	if err != nil {
		return nil, nil, err
	}
	for _, der := range pair.Certificate {
		certPEM = append(certPEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, nil, errs.New(errs.Internal, "encode a private key: %w", err)
	}
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Changed returns a channel that is closed at the next change of anything.
func (c *Credentials) Changed() <-chan struct{} { return c.changed.Next() }

// Verify checks a chain as a peer has sent it: signed by a root that counts now, in its
// time, not revoked, and, if units are given, of one of them. It returns the peer. The
// error says which of these is not so; its kind is Invalid.
func (c *Credentials) Verify(chain []*x509.Certificate, units ...Unit) (Peer, error) {
	c.mu.Lock()
	roots, revoked := c.pool, c.revoked
	c.mu.Unlock()
	if len(chain) == 0 {
		return Peer{}, errs.New(errs.Invalid, "no certificate was sent")
	}
	leaf, between := chain[0], x509.NewCertPool()
	for _, i := range chain[1:] {
		between.AddCert(i)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	peer := PeerOf(leaf)
	switch {
	case err != nil:
		return Peer{}, errs.New(errs.Invalid, "certificate of %s: %w", peer, err)
	case revoked != nil && revoked(leaf):
		return Peer{}, errs.New(errs.Invalid, "certificate of %s has been revoked", peer)
	case !peer.is(units):
		return Peer{}, errs.New(errs.Invalid, "certificate of %s: expected one of unit %v", peer, units)
	}
	return peer, nil
}

// Peer is the owner of a certificate.
type Peer struct {
	Name string
	Unit Unit
}

// PeerOf reads the owner from a certificate.
func PeerOf(cert *x509.Certificate) Peer {
	p := Peer{Name: cert.Subject.CommonName}
	if ou := cert.Subject.OrganizationalUnit; len(ou) == 1 {
		p.Unit = Unit(ou[0])
	}
	return p
}

func (p Peer) String() string { return string(p.Unit) + " " + p.Name }

func (p Peer) is(units []Unit) bool { return len(units) == 0 || slices.Contains(units, p.Unit) }
