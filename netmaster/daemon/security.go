package daemon

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/httproutes"
	"github.com/contiv/netplugin/utils/netx"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// Security says how a Daemon tells its clients apart (docs/decisions/0033-who-asks.md). The
// zero value: it does not, and everybody may do everything, as in the original.
type Security struct {
	Mode        tlsport.Mode     // "" means off
	Credentials *pki.Credentials // of this netmaster; not nil but in mode off
	Tokens      Authenticator    // nil: nobody has a token
	// Local are handlers for paths, by prefix, that every netmaster answers by itself and
	// that check by themselves who asks.
	Local map[string]http.Handler
	// Gate returns a handler that passes on what an identity may do; nil: everything.
	Gate func(next http.Handler) http.Handler
	// Note returns a handler whose answers are noted in the audit log; nil: they are not.
	Note func(next http.Handler) http.Handler
	// Socket is a unix socket on which the root user of this host is served; nil: none. The
	// Daemon closes it.
	Socket net.Listener
}

// Authenticator tells whose token a request has.
type Authenticator interface {
	// Authenticate returns false if the request has no token. An error that is an
	// http.Handler answers the request; one that has a method Status() int is answered with
	// that status, others with 400.
	Authenticate(r *http.Request) (id identity.Identity, found bool, err error)
	// Changed returns a channel that is closed when the next answer may be another one.
	Changed() <-chan struct{}
}

// listen puts a listener behind the security of the daemon.
func (d *Daemon) listen(l net.Listener, policy pki.ClientPolicy, units ...pki.Unit) net.Listener {
	s := d.cfg.Security
	cfg := tlsport.NewConfig(s.Mode, s.Credentials, d.log, policy, units...)
	cfg.Plain = d.plain.note
	return tlsport.Listen(l, cfg)
}

// dialer connects to other netmasters.
func (d *Daemon) dialer(timeout, keepAlive time.Duration) *tlsport.Dialer {
	s := d.cfg.Security
	dialer := tlsport.NewDialer(s.Mode, s.Credentials, pki.UnitMaster)
	dialer.Timeout, dialer.KeepAlive = timeout, keepAlive
	return dialer
}

// peerKey is where a connection's context says which user of this host has a unix socket.
type peerKey struct{}

// notePeer is an http.Server's ConnContext: it asks the kernel who is at the other end of a
// unix socket.
func notePeer(ctx context.Context, conn net.Conn) context.Context {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	uid := -1
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	return context.WithValue(ctx, peerKey{}, uid)
}

var errNotRoot = errors.New("this socket serves root and the user of netmaster only")

// identify finds out who sends a request, once, and notes it in the request's context.
func (d *Daemon) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := d.whoAsks(r)
		if err != nil {
			refusal := refusalOf(err)
			if d.cfg.Security.Note != nil {
				refusal = d.cfg.Security.Note(refusal)
			}
			nobody := identity.Identity{Kind: identity.Anonymous, How: "tls", Source: r.RemoteAddr}
			refusal.ServeHTTP(w, r.WithContext(identity.With(r.Context(), nobody)))
			return
		}
		r.Header.Del(identity.Header)
		if d.cfg.Security.Mode == tlsport.Require && !fromMaster(r) {
			r.Header.Del(hop)
		}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	})
}

// refusalOf answers a request whose sender cannot be identified.
func refusalOf(err error) http.Handler {
	var answer http.Handler
	if errors.As(err, &answer) {
		return answer
	}
	status := http.StatusBadRequest
	var coded interface{ Status() int }
	switch {
	case errors.As(err, &coded):
		status = coded.Status()
	case errors.Is(err, errNotRoot):
		status = http.StatusForbidden
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { httproutes.Refuse(w, status, err.Error()) })
}

// whoAsks returns who sends a request.
func (d *Daemon) whoAsks(r *http.Request) (identity.Identity, error) {
	s := d.cfg.Security
	if uid, ok := r.Context().Value(peerKey{}).(int); ok {
		if uid != 0 && uid != os.Getuid() { // who can read the authority's key anyway
			return identity.Identity{}, errNotRoot
		}
		return identity.Identity{Kind: identity.Root, Name: "root", How: "socket", Source: "unix"}, nil
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		peer := pki.PeerOf(r.TLS.PeerCertificates[0]) // verified in the handshake
		if fromMaster(r) && r.Header.Get(identity.Header) != "" {
			return identity.Forwarded(r.Header)
		}
		return OfPeer(peer, r.RemoteAddr), nil
	}
	if s.Tokens != nil && s.Mode.TLS() {
		id, found, err := s.Tokens.Authenticate(r)
		if found || err != nil {
			id.Source = r.RemoteAddr
			return id, err
		}
	}
	id := identity.Identity{Kind: identity.Anonymous, How: "plain", Source: r.RemoteAddr}
	if r.TLS != nil {
		id.How = "tls"
	}
	if s.Mode != tlsport.Require {
		id.Grants = []identity.Grant{{Role: identity.Admin}} // as in the original
	}
	return id, nil
}

// fromMaster reports whether a netmaster has sent a request.
func fromMaster(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && pki.PeerOf(r.TLS.PeerCertificates[0]).Unit == pki.UnitMaster
}

// OfPeer is the identity of the owner of a certificate that has been verified.
func OfPeer(peer pki.Peer, source string) identity.Identity {
	id := identity.Identity{Name: peer.Name, How: "certificate", Source: source}
	switch peer.Unit {
	case pki.UnitMaster:
		id.Kind = identity.Master
	case pki.UnitAgent:
		id.Kind = identity.Host
	case pki.UnitMonitor:
		id.Kind = identity.Monitor
	default:
		id.Kind = identity.Anonymous
	}
	return id
}

// local serves the paths that have a handler of their own, and passes the rest on.
func (d *Daemon) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, h := range d.cfg.Security.Local {
			if strings.HasPrefix(r.URL.Path, prefix) {
				h.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// plainClients remembers who has come without TLS while both are served.
type plainClients struct {
	mu   sync.Mutex
	last map[string]time.Time // by address without port
}

// maxPlain bounds how many addresses are remembered.
const maxPlain = 4096

func (p *plainClients) note(from net.Addr) {
	host := netx.HostOf(from.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	if _, known := p.last[host]; known || len(p.last) < maxPlain {
		p.last[host] = time.Now()
	}
}

// Plain returns the addresses of clients that have come without TLS since the daemon
// started, and when last.
func (d *Daemon) Plain() map[string]time.Time {
	d.plain.mu.Lock()
	defer d.plain.mu.Unlock()
	return maps.Clone(d.plain.last)
}
