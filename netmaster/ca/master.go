package ca

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
)

// exporterLabel names the keying material that both ends of a TLS connection share, and
// nobody else: RFC 8446 §7.5. Who stands in the middle has two connections, with two of them,
// so that neither end's proof is good for the other connection.
const exporterLabel = "EXPORTER-contiv-masters-join"

// Who proves: no proof can be sent back to whom it came from.
const (
	fromClient = "client"
	fromServer = "server"
)

// prove returns the proof of one end of a connection. The error's kind is Invalid if the
// connection is not TLS 1.3.
func prove(secret []byte, s *tls.ConnectionState, from string) ([]byte, error) {
	if s == nil || s.Version != tls.VersionTLS13 {
		return nil, errs.New(errs.Invalid, "netmasters join over TLS 1.3 only; use an https:// URL")
	}
	material, err := s.ExportKeyingMaterial(exporterLabel, nil, sha256.Size)
	if err != nil {
		return nil, errs.New(errs.Invalid, "keying material of the connection: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(from + "\x00"))
	mac.Write(material)
	return mac.Sum(nil), nil
}

func proves(secret []byte, s *tls.ConnectionState, from, proof string) error {
	want, err := prove(secret, s, from)
	if err != nil {
		return err
	}
	got, err := hex.DecodeString(proof)
	if err != nil || !hmac.Equal(got, want) {
		return refuse(forbidden, "the other netmaster has another --cluster-secret-file, or somebody stands between the two")
	}
	return nil
}

// serveMasterJoin hands the authority to a netmaster that knows the cluster's secret.
func (c *CA) serveMasterJoin(r *http.Request) (any, error) {
	var req securityapi.MasterJoinRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	if len(c.cfg.Secret) == 0 {
		return nil, refuse(forbidden, "this netmaster has no cluster secret; use --cluster-secret-file")
	}
	if err := proves(c.cfg.Secret, r.TLS, fromClient, req.Proof); err != nil {
		return nil, err
	}
	proof, err := prove(c.cfg.Secret, r.TLS, fromServer)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c.current())
	if err != nil {
		return nil, errs.New(errs.Internal, "encode the authority: %w", err)
	}
	c.log.WithField("source", r.RemoteAddr).Info("netmaster joined")
	return securityapi.MasterJoinResponse{Proof: hex.EncodeToString(proof), Bundle: text}, nil
}

// serveBundle is for netmasters that have joined.
func (c *CA) serveBundle(r *http.Request) (any, error) {
	if id := identity.From(r.Context()); id.Kind != identity.Master {
		return nil, refuse(forbidden, "expected the certificate of a netmaster, found %s", id)
	}
	return c.current(), nil
}

// errNobody: no other netmaster can be reached.
var errNobody = errors.New("no other netmaster answers")

// joinMasters gets the authority from one of the netmasters to join, which it waits for. The
// first netmaster of a cluster asks once; the error is then errNobody if there is nobody yet.
func (c *CA) joinMasters(ctx context.Context, others []string, first bool) (bundle, error) {
	pauses, said := retry.New(200*time.Millisecond, 5*time.Second), ""
	var last error
	for {
		nobody := true
		for _, base := range others {
			b, err := joinMaster(ctx, base, c.cfg.Secret)
			if err == nil {
				c.log.WithField("netmaster", base).WithField("hash", b.hash()).Info("joined the cluster's netmasters")
				return b, nil
			}
			nobody = nobody && errs.Is(err, errs.Unavailable)
			if last == nil || ctx.Err() == nil { // that the time is over is no reason
				last = errs.New(errs.KindOf(err), "join %s: %w", base, err)
			}
		}
		if first && nobody && ctx.Err() == nil {
			return bundle{}, errNobody
		}
		if last.Error() != said {
			said = last.Error()
			c.log.WithError(last).Warn("cannot get the certificate authority from another netmaster; retrying")
		}
		if !pauses.Wait(ctx) {
			return bundle{}, last
		}
	}
}

// joinMaster asks one netmaster.
func joinMaster(ctx context.Context, base string, secret []byte) (bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return bundle{}, errs.New(errs.Invalid, "expected a URL https://HOST:PORT")
	}
	// No certificate counts here: it is the proofs that count.
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}}
	raw, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return bundle{}, errs.New(errs.Unavailable, "%w", err)
	}
	conn := raw.(*tls.Conn)
	defer func() { _ = conn.Close() }()
	tlsState := conn.ConnectionState()
	proof, err := prove(secret, &tlsState, fromClient)
	if err != nil {
		return bundle{}, err
	}
	var resp securityapi.MasterJoinResponse
	client := clientOver(conn)
	defer client.CloseIdleConnections()
	req := securityapi.MasterJoinRequest{Proof: hex.EncodeToString(proof)}
	if _, err := securityapi.Call(ctx, client, http.MethodPost, base+securityapi.PathMasterJoin, req, &resp); err != nil {
		return bundle{}, err
	}
	if err := proves(secret, &tlsState, fromServer, resp.Proof); err != nil {
		return bundle{}, err
	}
	return parseBundle(resp.Bundle)
}

// clientOver returns an HTTP client for one connection that exists.
func clientOver(conn net.Conn) *http.Client {
	once := make(chan net.Conn, 1)
	once <- conn
	dial := func(context.Context, string, string) (net.Conn, error) {
		select {
		case c := <-once:
			return c, nil
		default:
			return nil, errs.New(errs.Unavailable, "the connection has ended")
		}
	}
	return &http.Client{Transport: &http.Transport{DialTLSContext: dial}, CheckRedirect: securityapi.NoRedirect}
}

// peerClient returns an HTTP client that talks to netmasters only.
func peerClient(creds *pki.Credentials) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: pki.ClientConfig(creds, pki.UnitMaster), DisableKeepAlives: true},
		CheckRedirect: securityapi.NoRedirect, Timeout: 10 * time.Second,
	}
}
