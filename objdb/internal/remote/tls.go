package remote

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/contiv/netplugin/utils/errs"
)

// TLS makes the configuration of a client of a store: its authorities from the PEM
// file ca, or the system's if that is empty, and its certificate, if cert is given,
// read again for each connection so that a rotated one is used. Files that cannot be
// used are Invalid.
func TLS(store, ca, cert, key string) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, errs.New(errs.Invalid, "certificate authority of %s: %w", store, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errs.New(errs.Invalid, "certificate authority of %s: %s holds no PEM certificate", store, ca)
		}
	}
	if cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, errs.New(errs.Invalid, "client certificate for %s: %w", store, err)
		}
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return out, nil
}
