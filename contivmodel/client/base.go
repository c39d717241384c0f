package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// base is one server.
type base struct {
	url    string // without a slash at the end
	socket string // path of a unix socket; empty: none
	host   string // of the URL, with port 80, if there is a socket
}

func (b base) String() string {
	if b.socket != "" {
		return "unix://" + b.socket
	}
	return b.url
}

// parseBase reads a URL as Config has it. The error's kind is Invalid.
func parseBase(text string) (base, error) {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/") && u.RawQuery == "" && u.Fragment == "":
		// A name of its own for each socket keeps their connections apart.
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(u.Path)) // never fails
		name := fmt.Sprintf("socket-%x.invalid", sum.Sum64())
		return base{url: "http://" + name, socket: u.Path, host: net.JoinHostPort(name, "80")}, nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return base{}, errs.New(errs.Invalid, "netmaster URL %q: expected http://HOST[:PORT] or https://HOST[:PORT]", text)
	}
	return base{url: strings.TrimRight(text, "/")}, nil
}

// dialBases connects to unix sockets for those bases that have one.
func dialBases(bases []base, others func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	var dialer net.Dialer
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, b := range bases {
			if b.socket != "" && address == b.host {
				return dialer.DialContext(ctx, "unix", b.socket)
			}
		}
		return others(ctx, network, address)
	}
}

// tlsConfig says which servers to believe.
func tlsConfig(cfg Config) (*tls.Config, error) {
	settings := &tls.Config{InsecureSkipVerify: cfg.Insecure, MinVersion: tls.VersionTLS12} // asked for
	if cfg.Insecure || len(cfg.CA) == 0 {
		return settings, nil
	}
	roots := pki.NewCredentials()
	if err := roots.SetRoots(cfg.CA); err != nil {
		return nil, errs.New(errs.Invalid, "certificate authority of the cluster: %w", err)
	}
	settings.InsecureSkipVerify = true // checked below
	settings.VerifyConnection = func(s tls.ConnectionState) error {
		peer, err := roots.Verify(s.PeerCertificates)
		switch {
		case err != nil:
			return err
		case peer.Unit == pki.UnitMaster:
			return nil
		case peer.Unit == pki.UnitAgent, peer.Unit == pki.UnitMonitor:
			return errs.New(errs.Invalid, "expected the certificate of a netmaster, got that of %s", peer)
		}
		// An authority that is not the cluster's own may not tell units, but names.
		return s.PeerCertificates[0].VerifyHostname(s.ServerName)
	}
	return settings, nil
}

// isUntrusted reports whether a server was refused for its certificate, which will be the same
// a moment later.
func isUntrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	return errors.As(err, &verify) || errs.Is(err, errs.Invalid)
}
