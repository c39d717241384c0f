package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"net"
	"slices"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// Unit is what the owner of a certificate is: its organizational unit.
type Unit string

// The units of a cluster.
const (
	UnitMaster  Unit = "master"  // a netmaster
	UnitAgent   Unit = "agent"   // the agent of a host
	UnitMonitor Unit = "monitor" // a collector of metrics
)

// How long things are valid. A certificate is valid from skew before it is made, so that a
// clock that is behind does not lock its owner out.
const (
	AuthorityValid = 10 * 365 * 24 * time.Hour
	DefaultValid   = 90 * 24 * time.Hour
	skew           = time.Hour
)

// Authority signs the certificates of a cluster.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a key of its own. name is for people.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errs.New(errs.Internal, "make the key of a certificate authority: %w", err)
	}
	serial, err := newSerial(now)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{"contiv"}},
		NotBefore: now.Add(-skew), NotAfter: now.Add(AuthorityValid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1, // the one below is the next authority, see Cross
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, errs.New(errs.Internal, "make a certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errs.New(errs.Internal, "make a certificate authority: %w", err)
	}
	return &Authority{Cert: cert, key: key}, nil
}

// ParseAuthority reads an authority from PEM. The error's kind is Invalid.
func ParseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certs, err := ParseCertificates(certPEM)
	if err != nil {
		return nil, errs.New(errs.Invalid, "certificate authority: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, errs.New(errs.Invalid, "key of the certificate authority: %w", err)
	}
	if !key.PublicKey.Equal(certs[0].PublicKey) {
		return nil, errs.New(errs.Invalid, "the certificate authority's key does not belong to its certificate")
	}
	if !certs[0].IsCA {
		return nil, errs.New(errs.Invalid, "certificate %q is not that of a certificate authority", certs[0].Subject)
	}
	return &Authority{Cert: certs[0], key: key}, nil
}

// PEM returns the certificate and the private key.
func (a *Authority) PEM() (cert, key []byte, err error) {
	key, err = marshalKey(a.key)
	return EncodeCertificates(a.Cert), key, err
}

// Cross signs the certificate of the authority that comes next, so that who believes this
// one only believes the next one's certificates as well, if they are sent with it.
func (a *Authority) Cross(next *x509.Certificate, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial(now)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: next.Subject, SubjectKeyId: next.SubjectKeyId,
		NotBefore: now.Add(-skew), NotAfter: a.Cert.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, next.PublicKey, a.key)
	if err != nil {
		return nil, errs.New(errs.Internal, "sign the next certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errs.New(errs.Internal, "sign the next certificate authority: %w", err)
	}
	return cert, nil
}

// Hash returns the SHA-256 of the authority's public key (SubjectPublicKeyInfo), in hex:
// what a join token pins.
func (a *Authority) Hash() string { return KeyHash(a.Cert) }

// KeyHash returns the SHA-256 of a certificate's SubjectPublicKeyInfo, in hex.
func KeyHash(cert *x509.Certificate) string { return spkiHash(cert.RawSubjectPublicKeyInfo) }

// RequestHash is KeyHash for the certificates that are made of a certificate request.
func RequestHash(csr *x509.CertificateRequest) string { return spkiHash(csr.RawSubjectPublicKeyInfo) }

func spkiHash(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// MasterName is a DNS name in the certificate of every netmaster, and of nobody else: for
// libraries that check a name instead of a unit.
const MasterName = "netmaster.contiv.internal"

// Subject is what a certificate is to say.
type Subject struct {
	Name  string // common name: host label, or address of a netmaster
	Unit  Unit
	IPs   []net.IP      // addresses that general clients, such as browsers, may check
	Names []string      // DNS names, for the same
	Valid time.Duration // 0 means DefaultValid
}

// Sign makes a certificate for the key of a certificate request. What the request says but
// for the key does not count. The error's kind is Invalid if the request is not in order.
func (a *Authority) Sign(csrPEM []byte, s Subject, now time.Time) ([]byte, error) {
	csr, err := ParseRequest(csrPEM)
	if err != nil {
		return nil, err
	}
	return a.sign(csr.PublicKey, s, now)
}

// Issue makes a private key and a certificate for it, both in PEM.
func (a *Authority) Issue(s Subject, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errs.New(errs.Internal, "make a private key: %w", err)
	}
	if certPEM, err = a.sign(key.Public(), s, now); err != nil {
		return nil, nil, err
	}
	keyPEM, err = marshalKey(key)
	return certPEM, keyPEM, err
}

func (a *Authority) sign(public crypto.PublicKey, s Subject, now time.Time) ([]byte, error) {
	if s.Name == "" || !slices.Contains([]Unit{UnitMaster, UnitAgent, UnitMonitor}, s.Unit) {
		return nil, errs.New(errs.Invalid, "certificate for %q, unit %q: expected a name and a unit", s.Name, s.Unit)
	}
	if s.Valid == 0 {
		s.Valid = DefaultValid
	}
	serial, err := newSerial(now)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Clone(s.Names), func(n string) bool { return n == MasterName })
	if s.Unit == UnitMaster {
		names = append(names, MasterName)
	}
	end := now.Add(s.Valid)
	if end.After(a.Cert.NotAfter) {
		end = a.Cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.Name, OrganizationalUnit: []string{string(s.Unit)}, Organization: []string{"contiv"}},
		NotBefore: now.Add(-min(skew, s.Valid)), NotAfter: end, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: s.IPs, DNSNames: names,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, public, a.key)
	if err != nil {
		return nil, errs.New(errs.Internal, "sign the certificate of %s: %w", s.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
