package tlsport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Dialer connects to servers of the cluster. Clients use it below URLs of scheme http: what
// it returns is secure already where it has to be.
type Dialer struct {
	Mode Mode
	TLS  *tls.Config // of no use in mode off
	// Timeout bounds a connection with its handshake; 0 means DefaultHandshake.
	Timeout   time.Duration
	KeepAlive time.Duration // as in net.Dialer
}

// DialContext connects to an address. In mode accept a server that does not speak TLS gets a
// plain connection: it has not been closed yet.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := d.Timeout
	if timeout == 0 {
		timeout = DefaultHandshake
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dialer := net.Dialer{KeepAlive: d.KeepAlive}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil || d.Mode == Off || network == "unix" {
		return conn, err
	}
	secure := tls.Client(conn, d.TLS)
	err = secure.HandshakeContext(ctx)
	if err == nil {
		return secure, nil
	}
	conn.Close()
	var plain tls.RecordHeaderError
	if d.Mode == Accept && errors.As(err, &plain) {
		return dialer.DialContext(ctx, network, address)
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: &HandshakeError{Address: address, Err: err}}
}

// HandshakeError says why a connection that came about is not secure.
type HandshakeError struct {
	Address string
	Err     error
}

func (e *HandshakeError) Error() string {
	var plain tls.RecordHeaderError
	if errors.As(e.Err, &plain) {
		return "TLS handshake with " + e.Address + ": the server does not speak TLS; is it running with --tls off?"
	}
	return "TLS handshake with " + e.Address + ": " + e.Err.Error()
}

func (e *HandshakeError) Unwrap() error { return e.Err }
