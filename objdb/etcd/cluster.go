package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/contiv/netplugin/utils/pki"
)

// clusterTLS connects to servers that are netmasters of the same cluster. Their certificates
// are checked by unit, not by address, and with the credentials as they are at that moment.
type clusterTLS struct {
	credentials.TransportCredentials // over TLS

	plainToo bool
	plain    *plainServers
}

// plainServers are the addresses whose last answer to TLS was none of TLS.
type plainServers struct {
	mu   sync.Mutex
	list map[string]bool
}

func newClusterTLS(c *pki.Credentials, plainToo bool) credentials.TransportCredentials {
	return &clusterTLS{
		TransportCredentials: credentials.NewTLS(pki.ClientConfig(c, pki.UnitMaster)),
		plainToo:             plainToo, plain: &plainServers{list: map[string]bool{}},
	}
}

// Clone implements credentials.TransportCredentials.
func (c *clusterTLS) Clone() credentials.TransportCredentials {
	return &clusterTLS{TransportCredentials: c.TransportCredentials.Clone(), plainToo: c.plainToo, plain: c.plain}
}

// ClientHandshake implements credentials.TransportCredentials. A connection on which TLS has
// failed is of no more use, so that it is the next one that goes without; and the one after
// that tries TLS again, for the server may have it by then.
func (c *clusterTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	address := raw.RemoteAddr().String()
	if c.plainToo && c.plain.take(address) {
		return insecure.NewCredentials().ClientHandshake(ctx, authority, raw)
	}
	counted := &counted{Conn: raw}
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, counted)
	var notTLS tls.RecordHeaderError
	if err != nil && c.plainToo && ctx.Err() == nil && (counted.read == 0 || errors.As(err, &notTLS)) {
		c.plain.note(address)
	}
	return conn, info, err
}

func (p *plainServers) take(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.list[address]
	delete(p.list, address)
	return was
}

func (p *plainServers) note(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list[address] = true
}

// counted counts what comes in: a server without TLS closes the connection, or answers with
// something that is no TLS.
type counted struct {
	net.Conn
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read += n
	return n, err
}
