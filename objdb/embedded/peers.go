package embedded

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/retry"
	"github.com/contiv/netplugin/utils/tlsport"
)

// peerPort is where the other members reach this one with TLS. The library listens on a unix
// socket in the member's directory, which is root's; whoever has shown the certificate of a
// netmaster is connected with it, and in mode accept plain connections are, too.
//
// The other way, from this member to others, is the library's own: it reads certificate and
// key from files at every connection, and checks that the other end has the name that every
// netmaster's certificate has (pki.MasterName).
type peerPort struct {
	listener    net.Listener
	socket      string
	credentials *pki.Credentials
	files       peerFiles

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// peerFiles are the credentials as the library reads them.
type peerFiles struct{ cert, key, roots string }

// securePeers opens the port of a member and points the library to it.
func securePeers(cfg Config, e *embed.Config) (*peerPort, error) {
	dir := filepath.Join(cfg.Dir, "peers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errs.New(errs.Unavailable, "make a directory for the store's certificates: %w", err)
	}
	p := &peerPort{
		socket: filepath.Join(dir, "socket"), credentials: cfg.Credentials,
		files: peerFiles{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), roots: filepath.Join(dir, "roots.pem")},
	}
	if err := p.files.write(cfg.Credentials); err != nil {
		return nil, err
	}
	address := e.ListenPeerUrls[0].Host
	raw, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "listen on %s for members of the store: %w", address, err)
	}
	p.listener = tlsport.Listen(raw, tlsport.Config{
		Mode: cfg.Mode, TLS: pki.ServerConfig(cfg.Credentials, pki.CertificateRequired, pki.UnitMaster), Credentials: cfg.Credentials,
		Refused: refused(cfg.Log, "member of the store"),
	})
	e.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: p.socket}}
	e.PeerTLSInfo = transport.TLSInfo{CertFile: p.files.cert, KeyFile: p.files.key, TrustedCAFile: p.files.roots, ServerName: pki.MasterName}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.work.Go(p.serve)
	p.work.Go(p.renew)
	return p, nil
}

func (p *peerPort) close() {
	if p == nil {
		return
	}
	p.stop()
	p.listener.Close()
	p.work.Wait()
}

// serve connects other members with the library.
func (p *peerPort) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // it is closed; tlsport waits for descriptors to become free
		}
		p.work.Go(func() { p.join(c) })
	}
}

// join copies both ways until one end closes.
func (p *peerPort) join(c net.Conn) {
	defer c.Close()
	in, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(p.ctx, "unix", p.socket)
	if err != nil {
		return // the member is starting or stopping; the other one tries again
	}
	defer in.Close()
	defer context.AfterFunc(p.ctx, func() { c.Close(); in.Close() })()
	var back sync.WaitGroup
	back.Go(func() {
		defer c.Close()
		_, _ = io.Copy(c, in)
	})
	_, _ = io.Copy(in, c)
	in.Close()
	back.Wait()
}

// renew keeps the files as the credentials are.
func (p *peerPort) renew() {
	for {
		changed := p.credentials.Changed()
		if err := p.files.write(p.credentials); err != nil {
			changed = nil // what was written last stays until it expires; a restart tries again
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return
		}
	}
}

func (f peerFiles) write(c *pki.Credentials) error {
	cert, key, err := c.PairPEM()
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path string
		text []byte
	}{{f.key, key}, {f.cert, cert}, {f.roots, pki.EncodeCertificates(c.Roots()...)}} {
		next := file.path + ".new"
		err := os.WriteFile(next, file.text, 0o600)
		if err == nil {
			err = os.Rename(next, file.path)
		}
		if err != nil {
			return errs.New(errs.Unavailable, "write the store's certificates: %w", err)
		}
	}
	return nil
}

// moveToTLS has the others reach this member with TLS from now on, if they do not yet: as soon
// as each of them serves TLS itself, and so has what it takes to connect with it. One member
// after the other comes to this point, whatever the order, and connections that are open stay.
func (p *peerPort) moveToTLS(s *etcdserver.EtcdServer) {
	if p == nil {
		return
	}
	p.work.Go(func() {
		again := retry.New(500*time.Millisecond, 5*time.Second)
		for !p.moved(s) && again.Wait(p.ctx) {
		}
	})
}

// moved reports whether the membership has this member with TLS, and tries to have it so.
func (p *peerPort) moved(s *etcdserver.EtcdServer) bool {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	var me *membership.Member
	for _, m := range s.Cluster().Members() {
		if m.ID == s.MemberID() {
			me = m
			continue
		}
		for _, text := range m.PeerURLs {
			u, err := url.Parse(text)
			if err != nil || !p.answersTLS(ctx, u.Host) {
				return false
			}
		}
	}
	if me == nil || !slices.ContainsFunc(me.PeerURLs, func(u string) bool { return strings.HasPrefix(u, "http://") }) {
		return me != nil
	}
	next := *me
	next.PeerURLs = nil
	for _, u := range me.PeerURLs {
		next.PeerURLs = append(next.PeerURLs, strings.Replace(u, "http://", "https://", 1))
	}
	_, err := s.UpdateMember(ctx, next)
	return err == nil
}

// answersTLS reports whether the member at an address serves TLS, as a netmaster of this
// cluster.
func (p *peerPort) answersTLS(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	d := tls.Dialer{Config: pki.ClientConfig(p.credentials, pki.UnitMaster)}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}
