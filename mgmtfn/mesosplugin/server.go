package mesosplugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	cniversion "github.com/containernetworking/cni/pkg/version"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/mgmtfn/socket"
)

// Limits of one call: its body in bytes, and its duration, which is shorter than the
// plugin's.
const (
	maxBody     = 1 << 20
	addTimeout  = 50 * time.Second
	callTimeout = 25 * time.Second
)

// Agent says when the networks and endpoints of the host are known.
type Agent interface {
	Ready() error
	Progress() (revision, settings int64, changed <-chan struct{})
}

// Config configures a Server.
type Config struct {
	Attacher *attachment.Attacher // somebody else runs it
	Agent    Agent
	Log      logrus.FieldLogger
}

// Server serves the socket of netcontiv. Create it with New.
type Server struct{ cfg Config }

// New creates a server; it serves nothing before Run.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

// Run waits until the agent knows the networks and endpoints of the host and then serves
// path, a unix socket, until ctx ends. Running calls finish.
func (s *Server) Run(ctx context.Context, path string) error {
	for {
		_, _, changed := s.cfg.Agent.Progress()
		if s.cfg.Agent.Ready() == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
	l, err := socket.Listen(path)
	if err != nil {
		return fmt.Errorf("listen for Mesos: %w", err)
	}
	s.cfg.Log.WithField("socket", path).Info("serving Mesos")
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	return socket.Serve(ctx, l, srv, 5*time.Second)
}

// Handler returns the routes. Unknown paths are answered with 503, as in the original.
func (s *Server) Handler() http.Handler {
	at := s.cfg.Attacher
	mux := http.NewServeMux()
	for path, c := range map[string]struct {
		limit time.Duration
		serve func(context.Context, mesosapi.Request) ([]byte, error)
	}{
		mesosapi.PathAdd: {addTimeout, func(ctx context.Context, req mesosapi.Request) ([]byte, error) {
			attached, err := at.Add(ctx, wanted(req))
			if err != nil {
				return nil, err
			}
			return encode(req, attached)
		}},
		mesosapi.PathDelete: {callTimeout, func(ctx context.Context, req mesosapi.Request) ([]byte, error) {
			return nil, at.Delete(ctx, req.ContainerID, req.IfName)
		}},
		mesosapi.PathCheck: {callTimeout, func(ctx context.Context, req mesosapi.Request) ([]byte, error) {
			return nil, at.Check(ctx, wanted(req))
		}},
		mesosapi.PathStatus: {callTimeout, func(context.Context, mesosapi.Request) ([]byte, error) {
			return nil, at.Status()
		}},
		mesosapi.PathGC: {callTimeout, func(ctx context.Context, req mesosapi.Request) ([]byte, error) {
			valid := make([]attachment.ID, 0, len(req.Valid))
			for _, v := range req.Valid {
				valid = append(valid, attachment.ID(v))
			}
			return nil, at.GC(ctx, network(req), valid)
		}},
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.handle(w, r, c.limit, c.serve) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	return mux
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request, limit time.Duration, serve func(context.Context, mesosapi.Request) ([]byte, error)) {
	if r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	req, err := read(http.MaxBytesReader(w, r.Body, maxBody))
	var out []byte
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		out, err = serve(ctx, req)
	}
	if err == nil {
		answer(w, http.StatusOK, out)
		return
	}
	s.cfg.Log.WithError(err).WithFields(logrus.Fields{"call": r.URL.Path, "container": req.ContainerID}).Warn("a call of Mesos failed")
	answer(w, http.StatusInternalServerError, failure(req.Version, err))
}

// answer sends a JSON body, or none.
func answer(w http.ResponseWriter, status int, body []byte) {
	if len(body) > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// read decodes a request. Plugins name only versions that the agent supports.
func read(body io.Reader) (mesosapi.Request, error) {
	var req mesosapi.Request
	raw, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(raw, &req)
	}
	if err != nil {
		return mesosapi.Request{}, &attachment.Failure{Step: attachment.StepRequest, Code: cni.CodeDecode, Err: fmt.Errorf("unreadable request: %w", err)}
	}
	if req.Version == "" {
		return req, nil
	}
	for _, known := range cniversion.All.SupportedVersions() {
		if req.Version == known {
			return req, nil
		}
	}
	err = fmt.Errorf("version %q of the CNI specification: expected one of %v", req.Version, cniversion.All.SupportedVersions())
	req.Version = cniversion.Current() // nobody can answer in the other one
	return req, &attachment.Failure{Step: attachment.StepRequest, Code: types.ErrIncompatibleCNIVersion, Err: err}
}

// network is the name of the CNI configuration of a request. The original's plugin omits
// it, and works with one name only.
func network(req mesosapi.Request) string { return cmp.Or(req.Network, mesosapi.DefaultNetwork) }

// wanted is the attachment that a request asks for.
func wanted(req mesosapi.Request) attachment.Request {
	name := cmp.Or(cni.ParseArgs(req.Args)[mesosapi.ArgTaskName], req.ContainerID)
	return attachment.Request{
		ContainerID: req.ContainerID, IfName: req.IfName, Netns: req.Netns, CommonName: name, Config: network(req),
		Network: placement.Labelled(req.Labels),
	}
}
