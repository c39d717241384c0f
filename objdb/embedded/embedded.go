package embedded

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/errs"
)

// How long a stopping member waits for its successor, and for its connections to close.
const (
	passLeadWithin = 400 * time.Millisecond
	closeWithin    = 200 * time.Millisecond
)

// Server is a running member.
type Server struct {
	e       *embed.Etcd
	clients *clientPort // nil: the library serves them
	peers   *peerPort   // nil: the library serves them, without TLS
	streams *streams
	log     *logger
	once    sync.Once // Close
	passed  sync.Once // Drain
}

// Start starts a member and returns when the store is ready, which in a cluster of
// several members means: when most of them have started. The error's kind is Invalid
// when the Config is wrong, Unavailable when the member could not start (an address in
// use, a damaged directory), Timeout when ctx ended first.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	log := newLogger(cfg.Log)
	ec, err := cfg.server(log)
	if err == nil {
		err = cfg.checkTLS(ec)
	}
	if err != nil {
		return nil, err
	}
	open, reads := newStreams(), newTurns()
	ec.GRPCAdditionalServerOptions = append(ec.GRPCAdditionalServerOptions, grpc.ChainStreamInterceptor(open.intercept), grpc.ChainUnaryInterceptor(reads.unary))
	var port net.Listener
	if cfg.secure() {
		if port, err = listenClients(cfg); err != nil {
			return nil, err
		}
	}
	var peers *peerPort
	if cfg.secure() && cfg.InitialCluster != "" {
		if peers, err = securePeers(cfg, ec); err != nil {
			port.Close()
			return nil, err
		}
	}
	e, err := embed.StartEtcd(ec)
	if err != nil {
		if port != nil {
			port.Close()
		}
		peers.close()
		return nil, errs.New(errs.Unavailable, "start the store in %s on %s: %w", cfg.Dir, cfg.ListenClient, err)
	}
	s := &Server{e: e, peers: peers, streams: open, log: log}
	if port != nil {
		s.clients = serveClients(port, e.Server, open, reads, cfg.AgentReads)
	}
	select {
	case <-e.Server.ReadyNotify():
		peers.moveToTLS(e.Server)
		return s, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errs.New(errs.Unavailable, "it stopped unexpectedly")
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Close()
	return nil, fmt.Errorf("start the store in %s on %s: %w", cfg.Dir, cfg.ListenClient, err)
}

// Connect makes a client of the store that needs no socket. Closing it leaves the
// server running.
func (s *Server) Connect() objdb.Store {
	return etcd.Wrap(v3client.New(s.e.Server), "embedded etcd", maxOps)
}

// Stopped is closed when the server has stopped, by Close or because it failed.
func (s *Server) Stopped() <-chan struct{} { return s.e.Server.StopNotify() }

// Close stops the member; in a cluster it passes its lead on first. Clients should be
// closed before.
func (s *Server) Close() {
	s.once.Do(func() {
		s.log.closed.Store(true)
		s.streams.end()
		s.Drain()
		// The library's own Close would try to pass the lead for seconds, and wait for
		// services that begin only when the server is ready or has stopped.
		s.e.Server.HardStop()
		s.clients.close()
		// Now the data is safe. What is left is to close connections; the library gives
		// those of the other members a second to become idle, which they do not use.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.e.Close()
		}()
		wait(closed, closeWithin)
		s.peers.close()
	})
}

// Drain passes the lead of the store on; the member goes on serving.
func (s *Server) Drain() { s.passed.Do(s.passLead) }

// passLead lets another member lead, if this one does and another is there to take
// over; without it the others would notice that we are gone by their election time-out.
func (s *Server) passLead() {
	passed := make(chan struct{})
	go func() { // ends with the server at the latest
		defer close(passed)
		_ = s.e.Server.TryTransferLeadershipOnShutdown()
	}()
	wait(passed, passLeadWithin)
}

// wait waits for done, but no longer than limit.
func wait(done <-chan struct{}, limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// Open starts a member and returns a client of it; closing the client stops the
// member. Errors are those of Start.
func Open(ctx context.Context, cfg Config) (objdb.Store, error) {
	s, err := Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &owner{Store: s.Connect(), server: s}, nil
}

type owner struct {
	objdb.Store
	server *Server
}

var (
	_ objdb.Drainer    = (*owner)(nil)
	_ objdb.Membership = (*owner)(nil)
)

func (o *owner) Members(ctx context.Context) ([]objdb.Member, error) {
	if m, ok := o.Store.(objdb.Membership); ok {
		return m.Members(ctx)
	}
	return nil, nil
}

func (o *owner) Drain() { o.server.Drain() }

func (o *owner) Close() error {
	err := o.Store.Close()
	o.server.Close()
	return err
}
