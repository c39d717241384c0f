package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// secured returns what puts a listener of this host behind TLS; nil in mode off.
func (d *daemon) secured(policy pki.ClientPolicy, units ...pki.Unit) func(net.Listener) net.Listener {
	mode := d.o.secure.Mode
	if !mode.TLS() {
		return nil
	}
	if mode == tlsport.Accept {
		policy = pki.CertificateOptional
	}
	return func(l net.Listener) net.Listener {
		return tlsport.Listen(l, tlsport.Config{
			Mode: mode, TLS: pki.ServerConfig(d.creds, policy, units...), Credentials: d.creds,
			Refused: func(from net.Addr, why error) {
				d.log.WithError(why).WithField("client", from.String()).Debug("connection refused")
			},
		})
	}
}

// guarded keeps the REST API to who may use it, where clients are known by certificates.
func (d *daemon) guarded(h http.Handler) http.Handler {
	if d.o.secure.Mode != tlsport.Require {
		return h
	}
	return inspect.Guard(d.o.host, h)
}

// dial returns what connects to netmasters.
func (d *daemon) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &tlsport.Dialer{Mode: d.o.secure.Mode, Timeout: 2 * time.Second, KeepAlive: 10 * time.Second}
	if dialer.Mode.TLS() {
		dialer.TLS = pki.ClientConfig(d.creds, pki.UnitMaster)
	}
	return dialer.DialContext
}
