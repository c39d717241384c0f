package tlsport

import (
	"net"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/pki"
)

// NewConfig returns the Config of a port of a daemon. policy and units say which certificates
// its clients need in mode require; in accept none is needed, as who has none may come
// without TLS as well. Credentials are of no use in mode off.
func NewConfig(mode Mode, c *pki.Credentials, log logrus.FieldLogger, policy pki.ClientPolicy, units ...pki.Unit) Config {
	cfg := Config{Mode: mode, Credentials: c, Refused: func(from net.Addr, why error) {
		log.WithError(why).WithField("client", from.String()).Debug("connection refused")
	}}
	if mode == Accept {
		policy = pki.CertificateOptional
	}
	if mode.TLS() {
		cfg.TLS = pki.ServerConfig(c, policy, units...)
	}
	return cfg
}

// NewDialer returns a Dialer for daemons of some units. Credentials are of no use in mode off.
func NewDialer(mode Mode, c *pki.Credentials, units ...pki.Unit) *Dialer {
	d := &Dialer{Mode: mode}
	if mode.TLS() {
		d.TLS = pki.ClientConfig(c, units...)
	}
	return d
}
