package k8splugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
	"github.com/contiv/netplugin/mgmtfn/socket"
	"github.com/contiv/netplugin/state"
)

// Limits of one call: its body in bytes, and its duration. A runtime retries
// what fails; nine seconds are enough for another netmaster to take over.
const (
	maxBody     = 1 << 20
	addTimeout  = 9 * time.Second
	callTimeout = 25 * time.Second
)

// Server serves the CNI socket. Create it with NewServer.
type Server struct{ at *attachment.Attacher }

// NewServer creates a server for an attacher, which the caller runs. It serves nothing
// before Run.
func NewServer(at *attachment.Attacher) *Server { return &Server{at: at} }

// Run listens on a unix socket until ctx ends, then lets running calls finish.
func (s *Server) Run(ctx context.Context, path string) error {
	l, err := socket.Listen(path)
	if err != nil {
		return fmt.Errorf("listen for CNI calls: %w", err)
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	return socket.Serve(ctx, l, srv, 5*time.Second)
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	at := s.at
	mux := http.NewServeMux()
	handle(mux, cniapi.PathAddPod, addTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		res, err := at.Add(ctx, wanted(req))
		return reply(res), err
	})
	handle(mux, cniapi.PathDelPod, callTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		gone := wanted(req)
		return cniapi.PodReply{EndpointID: endpoint.Name(gone.ContainerID, gone.IfName)}, at.Delete(ctx, gone.ContainerID, gone.IfName)
	})
	handle(mux, cniapi.PathCheckPod, callTimeout, func(ctx context.Context, req cniapi.PodRequest) (cniapi.PodReply, error) {
		return cniapi.PodReply{}, at.Check(ctx, wanted(req))
	})
	handle(mux, cniapi.PathStatus, callTimeout, func(context.Context, struct{}) (cniapi.PodReply, error) {
		return cniapi.PodReply{}, at.Status()
	})
	handle(mux, cniapi.PathGC, callTimeout, func(ctx context.Context, req cniapi.GCRequest) (cniapi.PodReply, error) {
		var valid []attachment.ID
		for _, v := range req.ValidAttachments {
			valid = append(valid, attachment.ID(v))
		}
		return cniapi.PodReply{}, at.GC(ctx, req.Config, valid)
	})
	return mux
}

// wanted decodes a request; older peers omit some fields.
func wanted(req cniapi.PodRequest) attachment.Request {
	r := attachment.Request{
		ContainerID: req.ContainerID, IfName: req.IfName, Netns: req.Netns, CommonName: req.Name, MTU: req.MTU, Config: req.Config,
		Network: state.NetworkRef{Tenant: req.Tenant, Network: req.Network, Group: req.Group},
	}
	if c := req.RuntimeConfig; c != nil {
		r.Addresses, r.MAC = c.IPs, c.MAC
	}
	if r.ContainerID == "" {
		r.ContainerID = req.InfraContainerID
	}
	if r.IfName == "" {
		r.IfName = "eth0"
	}
	if req.Name != "" {
		r.Pod = attachment.Pod{Namespace: req.Namespace, Name: req.Name, UID: req.PodUID}
	}
	return r
}

func reply(res cni.Attached) cniapi.PodReply {
	r := cniapi.PodReply{
		EndpointID: res.Endpoint, MAC: res.MAC, MTU: res.MTU, HostIntf: res.HostPort,
		IPAddress: res.IPv4, IPv6Address: res.IPv6, Gateway: res.Gateway4, IPv6Gateway: res.Gateway6,
	}
	for _, rt := range res.Routes {
		r.Routes = append(r.Routes, cniapi.Route(rt))
	}
	return r
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

// texts are the original's messages for failed steps.
var texts = map[attachment.Step]string{
	attachment.StepRequest:   "Error creating EP",
	attachment.StepNetwork:   "Error getting labels",
	attachment.StepEndpoint:  "Error creating EP",
	attachment.StepNetns:     "Error moving to netns",
	attachment.StepInterface: "Error setting interface attributes",
	attachment.StepRoutes:    "Error setting default gateway",
	attachment.StepDetach:    "Error setting interface attributes",
	attachment.StepSwitch:    "the switch is not ready",
	attachment.StepAgent:     "the agent is not ready",
}

func failure(err error) cniapi.PodReply {
	f := attachment.FailureOf(err)
	return cniapi.PodReply{Result: 1, ErrCode: f.Code, ErrMsg: "Contiv:" + texts[f.Step], ErrInfo: "Err: " + oneLine(err)}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func answer(w http.ResponseWriter, status int, reply cniapi.PodReply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply)
}
