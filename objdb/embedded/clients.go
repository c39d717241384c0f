package embedded

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// clientPort serves other processes where TLS is served. (The library's own listener knows
// certificates as files only, and tells nobody whose it was.)
type clientPort struct {
	listener net.Listener
	server   *grpc.Server
	done     chan struct{}
}

// listenClients opens the port. Whoever connects is served from serve on.
func listenClients(cfg Config) (net.Listener, error) {
	raw, err := net.Listen("tcp", cfg.ListenClient)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "listen on %s for clients of the store: %w", cfg.ListenClient, err)
	}
	settings := pki.ServerConfig(cfg.Credentials, pki.CertificateRequired, pki.UnitMaster, pki.UnitAgent)
	settings.NextProtos = []string{"h2"} // gRPC clients insist on it
	return tlsport.Listen(raw, tlsport.Config{
		Mode: cfg.Mode, TLS: settings, Credentials: cfg.Credentials, Plain: cfg.Plain, Refused: refused(cfg.Log, "store client"),
	}), nil
}

// refused logs who was turned away.
func refused(log logrus.FieldLogger, who string) func(net.Addr, error) {
	if log == nil {
		return nil
	}
	return func(from net.Addr, why error) {
		log.WithFields(logrus.Fields{"component": "store", "source": from.String()}).WithError(why).Debug("refused a connection of a " + who)
	}
}

// serveClients serves etcd's own services to clients, each within its rights.
func serveClients(l net.Listener, s *etcdserver.EtcdServer, open *streams, reads turns, agents readers) *clientPort {
	p := &clientPort{listener: l, done: make(chan struct{}), server: v3rpc.Server(s, nil, nil,
		grpc.Creds(handshaken{}), grpc.ChainUnaryInterceptor(agents.unary, reads.unary), grpc.ChainStreamInterceptor(open.intercept, agents.stream))}
	go func() {
		defer close(p.done)
		select {
		case <-s.ReadyNotify():
			_ = p.server.Serve(l) // ends with close only: tlsport waits for descriptors to become free
		case <-s.StopNotify():
			l.Close()
		}
	}()
	return p
}

func (p *clientPort) close() {
	if p == nil {
		return
	}
	p.server.Stop()
	<-p.done
}

// handshaken are the credentials of connections whose handshake is done: tlsport has done it.
type handshaken struct{}

// peerInfo says who a connection is of.
type peerInfo struct {
	credentials.CommonAuthInfo
	pki.Peer
	secure bool
}

// AuthType implements credentials.AuthInfo.
func (peerInfo) AuthType() string { return "contiv" }

// ServerHandshake implements credentials.TransportCredentials.
func (handshaken) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, ok := c.(*tls.Conn)
	if !ok {
		return c, peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
	}
	info := peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, secure: true}
	if chain := secured.ConnectionState().PeerCertificates; len(chain) > 0 {
		info.Peer = pki.PeerOf(chain[0])
	}
	return c, info, nil
}

// ClientHandshake implements credentials.TransportCredentials; nobody calls it.
func (handshaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errs.New(errs.Internal, "the credentials of a server were used by a client")
}

// Info implements credentials.TransportCredentials.
func (handshaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "contiv"}
}

// Clone implements credentials.TransportCredentials.
func (h handshaken) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials.
func (handshaken) OverrideServerName(string) error { return nil }
