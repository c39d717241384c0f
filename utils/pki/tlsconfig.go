package pki

import (
	"crypto/tls"

	"github.com/contiv/netplugin/utils/errs"
)

// ClientPolicy says what a server wants of its clients' certificates.
type ClientPolicy int

// What a server can want.
const (
	CertificateOptional ClientPolicy = iota // a certificate that is sent must be in order
	CertificateRequired
)

// ServerConfig returns the TLS settings of a server. Clients that show a certificate must be
// of one of units, if any are given. The credentials may change afterwards.
func ServerConfig(c *Credentials, policy ClientPolicy, units ...Unit) *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert, // checked below, with the roots of that moment
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current()
		},
		// Resumed sessions would keep a certificate that has been revoked since.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 && policy == CertificateOptional {
				return nil
			}
			_, err := c.Verify(s.PeerCertificates, units...)
			return err
		},
	}
	if policy == CertificateRequired {
		cfg.ClientAuth = tls.RequireAnyClientCert
	}
	return cfg
}

// ClientConfig returns the TLS settings of a client whose servers are of one of units,
// whatever address they are reached under. The credentials may change afterwards.
func ClientConfig(c *Credentials, units ...Unit) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // checked below, by the unit instead of a name
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := c.Verify(s.PeerCertificates, units...)
			return err
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := c.current()
			if err != nil {
				return &tls.Certificate{}, nil // a server that needs one says so
			}
			return pair, nil
		},
	}
}

func (c *Credentials) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair == nil {
		return nil, errs.New(errs.Unavailable, "this process has no certificate yet")
	}
	return c.pair, nil
}
