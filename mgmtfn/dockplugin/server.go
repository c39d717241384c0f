package dockplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/utils/errs"
)

// Limits of one call: its body in bytes, and its duration. An Engine that starts waits for
// the calls about its containers before it serves; ten seconds are enough for another
// netmaster to take over.
const (
	maxBody     = 1 << 20
	callTimeout = 10 * time.Second
	undoTimeout = 5 * time.Second
)

// Server serves an Engine. Create it with NewServer.
type Server struct {
	cfg       Config
	dir       *directory
	endpoints *endpoint.Manager
	given     *addresses
	engine    *engineLoop
	begun     time.Time
	handlers  map[string]handler
}

// handler answers one call, given its body.
type handler func(ctx context.Context, body []byte) (any, error)

// NewServer makes a server; it serves nothing before Run.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg, dir: newDirectory(cfg), given: newAddresses(), begun: time.Now()}
	s.endpoints = endpoint.New(endpoint.Config{
		HostLabel: cfg.HostLabel, Master: cfg.Master, Agent: cfg.Agent, Ports: cfg.Ports,
		PortsChanged: cfg.Agent.PortsChanged, Removing: s.removing, Log: cfg.Log,
	})
	s.engine = newEngineLoop(s)
	s.handlers = s.routes()
	return s
}

// Run listens on a unix socket and follows the Engine until ctx ends; then it lets running
// calls finish and removes the socket.
func (s *Server) Run(ctx context.Context, socket string) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return Serve(gctx, socket, s) })
	g.Go(func() error { return s.dir.run(gctx) })
	g.Go(func() error { return s.endpoints.Run(gctx) })
	g.Go(func() error { return s.engine.run(gctx) })
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// routes lists the handlers, by path.
func (s *Server) routes() map[string]handler {
	network, ipam := "/"+cnm.NetworkDriver+".", "/"+cnm.IpamDriver+"."
	nothing := func(context.Context, cnm.EndpointRequest) (cnm.Empty, error) { return cnm.Empty{}, nil }
	return map[string]handler{
		network + "CreateNetwork":               call(s.createNetwork),
		network + "DeleteNetwork":               call(s.deleteNetwork),
		network + "AllocateNetwork":             call(s.allocateNetwork),
		network + "FreeNetwork":                 call(s.freeNetwork),
		network + "GwAllocCheck":                call(s.gatewayCheck),
		network + "CreateEndpoint":              call(s.createEndpoint),
		network + "DeleteEndpoint":              call(s.deleteEndpoint),
		network + "Join":                        call(s.join),
		network + "Leave":                       call(nothing),
		network + "ProgramExternalConnectivity": call(nothing),
		network + "RevokeExternalConnectivity":  call(nothing),

		ipam + "RequestPool":    call(s.requestPool),
		ipam + "RequestAddress": call(s.requestAddress),
		ipam + "ReleaseAddress": call(s.releaseAddress),
	}
}

// errUndecodable is a body that cannot be decoded for the call.
type errUndecodable struct{ error }

// call decodes the body for a function.
func call[Req, Resp any](do func(context.Context, Req) (Resp, error)) handler {
	return func(ctx context.Context, body []byte) (any, error) {
		var req Req
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, errUndecodable{fmt.Errorf("the request cannot be read: %w", err)}
		}
		return do(ctx, req)
	}
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve, ok := s.handlers[r.URL.Path]
	if fixed, is := cnm.Fixed(r.URL.Path, s.capabilities()); is && r.Method == http.MethodPost {
		cnm.Answer(w, http.StatusOK, fixed)
		return
	}
	if !ok || r.Method != http.MethodPost {
		cnm.Answer(w, http.StatusNotFound, failure(fmt.Errorf("%s %s is not implemented", r.Method, r.URL.Path)))
		return
	}
	log := s.cfg.Log.WithField("call", strings.TrimPrefix(r.URL.Path, "/"))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		cnm.Answer(w, http.StatusBadRequest, failure(err))
		return
	}
	log.WithField("bytes", len(body)).Debug("called by the Docker Engine") // not the body: labels and options may be secret
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	began := time.Now()
	reply, err := serve(ctx, body)
	log = log.WithField("took", time.Since(began).Round(time.Millisecond))
	var undecodable errUndecodable
	switch {
	case err == nil:
		log.Debug("answered")
		s.reply(w, reply)
	case errors.As(err, &undecodable):
		cnm.Answer(w, http.StatusBadRequest, failure(err))
	default:
		log.WithError(err).Warn("a call of the Docker Engine failed")
		cnm.Answer(w, http.StatusInternalServerError, failure(err))
	}
}

// undeliverable is a reply that must be undone if it cannot be delivered: an Engine that
// has given up waiting does not know what to release.
type undeliverable struct {
	answer any
	undo   func(context.Context) error
}

// reply answers a call that succeeded.
func (s *Server) reply(w http.ResponseWriter, reply any) {
	u, ok := reply.(undeliverable)
	if !ok {
		cnm.Answer(w, http.StatusOK, reply)
		return
	}
	cnm.Answer(w, http.StatusOK, u.answer)
	if http.NewResponseController(w).Flush() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
	defer cancel()
	if err := u.undo(ctx); err != nil {
		s.cfg.Log.WithError(err).Warn("cannot undo a call whose reply could not be delivered; netmaster takes the address back later")
	}
}

// failure is the answer to a call that failed, on one line.
func failure(err error) cnm.Error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Timeout) {
		text += "; try again later"
	}
	return cnm.Error{Err: text, Error: text}
}

func (s *Server) capabilities() cnm.Capabilities { return Capabilities(s.cfg.Scope, s.cfg.Swarm) }

// Capabilities of the network driver.
func Capabilities(scope string, swarm bool) cnm.Capabilities {
	c := cnm.Capabilities{Scope: cnm.ScopeLocal, ConnectivityScope: cnm.ScopeGlobal, GwAllocChecker: true}
	if swarm || scope == ScopeGlobal {
		c.Scope = cnm.ScopeGlobal
	}
	return c
}
