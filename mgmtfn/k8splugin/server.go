package k8splugin

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

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/mgmtfn/socket"
	"github.com/contiv/netplugin/utils/errs"
)

// Limits of one call: its body in bytes, and its duration. A runtime that is told soon
// to try later does so; nine seconds are enough for another netmaster to take over.
const (
	maxBody     = 1 << 20
	addTimeout  = 9 * time.Second
	callTimeout = 25 * time.Second
)

// Server serves the CNI socket. Create it with NewServer.
type Server struct {
	cfg Config
	at  *attacher
}

// NewServer makes a server; it serves nothing before Run.
func NewServer(cfg Config) *Server { return &Server{cfg: cfg, at: newAttacher(cfg)} }

// Run listens on a unix socket until ctx ends, then lets calls that run finish.
func (s *Server) Run(ctx context.Context, path string) error {
	l, err := socket.Listen(path)
	if err != nil {
		return fmt.Errorf("listen for CNI calls: %w", err)
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.at.pending.Run(gctx) })
	g.Go(func() error { return s.at.collect(gctx) })
	g.Go(func() error { return socket.Serve(gctx, l, srv, 5*time.Second) })
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, cniapi.PathAddPod, addTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		return s.at.add(ctx, normalise(req))
	})
	handle(mux, cniapi.PathDelPod, callTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		req = normalise(req)
		return cniapi.PodReply{EndpointID: endpointName(req.ContainerID, req.IfName)}, s.at.del(ctx, req)
	})
	handle(mux, cniapi.PathCheckPod, callTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		return cniapi.PodReply{}, s.at.check(ctx, normalise(req))
	})
	handle(mux, cniapi.PathStatus, callTimeout, func(context.Context, struct{}) (cniapi.PodReply, error) {
		return cniapi.PodReply{}, s.status()
	})
	handle(mux, cniapi.PathGC, callTimeout, func(ctx context.Context, req cniapi.GCRequest) (cniapi.PodReply, error) {
		return cniapi.PodReply{}, s.at.gc(ctx, req)
	})
	return mux
}

// normalise fills in what older peers leave out.
func normalise(req cniapi.PodRequest) cniapi.PodRequest {
	if req.ContainerID == "" {
		req.ContainerID = req.InfraContainerID
	}
	if req.IfName == "" {
		req.IfName = "eth0"
	}
	return req
}

func handle[T any](mux *http.ServeMux, path string, limit time.Duration, serve func(context.Context, T) (cniapi.PodReply, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/json" {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var req T
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &req)
		}
		if err != nil {
			answer(w, http.StatusInternalServerError, cniapi.PodReply{})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		reply, err := serve(ctx, req)
		if err != nil {
			answer(w, http.StatusInternalServerError, failure(err))
			return
		}
		answer(w, http.StatusOK, reply)
	})
}

func failure(err error) cniapi.PodReply {
	r := cniapi.PodReply{Result: 1, ErrCode: cniapi.CodeEndpoint, ErrMsg: "Contiv:" + msgEndpoint, ErrInfo: "Err: " + oneLine(err)}
	var c *codedError
	if errors.As(err, &c) {
		r.ErrCode, r.ErrMsg = c.code, "Contiv:"+c.msg
	}
	return r
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func answer(w http.ResponseWriter, status int, reply cniapi.PodReply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply)
}

// status says whether ADD can work (CNI STATUS).
func (s *Server) status() error {
	if err := s.cfg.Ports.Ready(); err != nil {
		return &codedError{cniapi.CodeLimited, "the switch is not ready", err}
	}
	if err := s.cfg.Agent.Ready(); err != nil {
		return &codedError{cniapi.CodeNotAvailable, "the agent is not ready", err}
	}
	return nil
}

// check verifies an attachment (CNI CHECK).
func (a *attacher) check(ctx context.Context, req cniapi.PodRequest) error {
	name := endpointName(req.ContainerID, req.IfName)
	for _, rec := range a.cfg.Agent.LocalEndpoints() {
		if rec.EndpointID != name {
			continue
		}
		port, ok := a.portOf(rec.ID)
		if !ok {
			return coded(cniapi.CodeInterface, msgInterface, fmt.Errorf("endpoint %s has no port in the switch", rec.ID))
		}
		n, err := a.cfg.Agent.Network(ctx, rec.NetID)
		if err != nil {
			return coded(cniapi.CodeEndpoint, msgEndpoint, err)
		}
		ifc, err := containerInterface(req, rec, n, port)
		if err != nil {
			return coded(cniapi.CodeEndpoint, msgEndpoint, err)
		}
		if err := ifc.verify(); err != nil {
			return err
		}
		return coded(cniapi.CodeEndpoint, msgEndpoint, a.cfg.Ports.Realised(ctx, rec.ID))
	}
	return coded(cniapi.CodeEndpoint, msgEndpoint, errs.New(errs.NotFound, "container %s has no endpoint on host %s", req.ContainerID, a.cfg.HostLabel))
}

func (a *attacher) portOf(endpointID string) (drivers.Port, bool) {
	for _, at := range a.cfg.Ports.Attachments() {
		if at.EndpointID == endpointID {
			return at.Port, true
		}
	}
	return drivers.Port{}, false
}
