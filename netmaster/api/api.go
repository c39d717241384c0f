// Package api is the HTTP face of a leading netmaster: the object model under
// /api/v1/, the calls of agents under /plugin/, and what operators look at and clean up
// under /services, /service/ and /debug/. It translates, and decides nothing.
//
// # Answers
//
// 200 with JSON and a newline; 404 for a path or method that does not exist; 503 with
// Retry-After when the request may succeed if repeated, because this netmaster does
// not lead any more or the store does not answer; 500 for everything else that goes
// wrong, missing objects included. Errors are one line of text. Clients of the
// original depend on these codes, so there is no 201, 400 or 409.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// maxBody bounds a request body, in bytes.
const maxBody = 1 << 20

// defaultTimeout is how long a request may take: longer than the store needs to elect
// a leader of its own, shorter than container runtimes wait.
const defaultTimeout = 10 * time.Second

// Config is what a controller needs besides the store.
type Config struct {
	Log         logrus.FieldLogger
	ClusterMode string // docker | kubernetes | swarm-mode | test
	FwdMode     string // bridge | routing; of a new cluster
	Infra       string // default | aci | aci-opflex; of a new cluster
	AgentPort   int    // where agents serve HTTP; 0 means 9090
	Docker      Docker // docker networks, in mode docker
	ACIGateway  string // URL of the gateway to an ACI fabric; "" means aci.DefaultURL
	// DefaultNetwork is created in a cluster that has no network yet; nil: none is.
	DefaultNetwork *contivmodel.Network
	// Members is what this netmaster knows of the agents; nil: nothing.
	Members *cluster.Members
	// Grace is how long a host may be away before its endpoints are removed; 0 means a day.
	Grace time.Duration
	// Nodes tells of the cluster of Kubernetes that hosts are in; nil: they are in none.
	Nodes intent.Nodes
	// RequestTimeout is how long a request waits for the store; 0 means 10 s.
	RequestTimeout time.Duration
}

// NewController returns what the daemon calls when it has become leader.
func NewController(cfg Config) daemon.NewController {
	return func(ctx context.Context, store objdb.Store, lead objdb.Leadership) (daemon.Controller, error) {
		gateway, err := aci.NewClient(cfg.ACIGateway)
		if err != nil {
			return nil, err
		}
		engine, err := intent.New(ctx, intent.Config{
			Log: cfg.Log, ClusterMode: cfg.ClusterMode, FwdMode: cfg.FwdMode, Infra: cfg.Infra, AgentPort: cfg.AgentPort,
			Members: cfg.Members, Grace: cfg.Grace, Nodes: cfg.Nodes,
		}, store, lead)
		if err != nil {
			return nil, err
		}
		if cfg.DefaultNetwork != nil {
			if err := makeDefaultNetwork(ctx, engine, *cfg.DefaultNetwork); err != nil {
				cfg.Log.WithError(err).Error("containers that name no network cannot be attached")
			}
		}
		hosts := agents.New(store, cfg.AgentPort)
		fabric := aci.New(aci.Config{
			Log: cfg.Log, Store: store, Fence: lead.Fence(), Gateway: gateway,
			Announce: func(ctx context.Context, group int) { announce(ctx, cfg.Log, hosts, group) },
		}, engine)
		go fabric.Run(ctx)
		return newHandler(cfg, engine, fabric, newDocker(ctx, cfg, engine, store, lead.Fence())), nil
	}
}

// announce has all hosts announce the endpoints of a group, and logs what came of it.
func announce(ctx context.Context, log logrus.FieldLogger, hosts *agents.Client, group int) {
	n, err := hosts.Announce(ctx, group)
	entry := log.WithField("group", group).WithField("endpoints", n)
	if err != nil {
		entry.WithError(err).Warn("some hosts do not announce the endpoints of a group")
		return
	}
	entry.Info("hosts announce the endpoints of a group")
}

// handler routes the requests of one tenure.
type handler struct {
	log     logrus.FieldLogger
	timeout time.Duration
	router  *mux.Router
	written func() (revision, settings int64)
	metrics *metrics
}

func newHandler(cfg Config, e *intent.Engine, fabric *aci.Fabric, d docker) *handler {
	h := &handler{log: cfg.Log, timeout: cfg.RequestTimeout, router: mux.NewRouter().UseEncodedPath(), written: e.Written}
	if h.timeout == 0 {
		h.timeout = defaultTimeout
	}
	// Without this, a known path with another method would be a 405.
	h.router.MethodNotAllowedHandler = http.NotFoundHandler()
	for _, c := range e.Collections() {
		h.collection(withDocker(withFabric(c, e, fabric), e, d))
	}
	h.endpoints(e)
	h.plugin(e)
	h.document()
	h.docs()
	h.services(e)
	h.cleanup(e)
	members := cfg.Members
	if members == nil {
		members = cluster.New("")
	}
	h.metrics = newMetrics(e, members)
	h.router.Use(h.metrics.observe)
	h.cluster(e, members)
	h.trace(e)
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	h.router.ServeHTTP(w, r.WithContext(ctx))
}

// readBody reads a bounded body.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errs.New(errs.Invalid, "request body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "read the request body: %w", err)
	}
	return body, nil
}

// pathVar returns a variable of the matched route, decoded.
func pathVar(r *http.Request, name string) (string, error) {
	v, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil {
		return "", errs.New(errs.Invalid, "path: %w", err)
	}
	return v, nil
}

// answer writes v, or the error if there is one.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	var text bytes.Buffer
	if err == nil {
		err = json.NewEncoder(&text).Encode(v)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text.Bytes()) // a client that has gone is nobody's error
}

// fail writes an error as one line of text.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch kind := errs.KindOf(err); kind {
	case errs.Unavailable, errs.Timeout:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case errs.Internal, errs.Other:
		h.log.WithFields(logrus.Fields{"method": r.Method, "path": r.URL.Path}).WithError(err).Error("request failed")
	}
	http.Error(w, strings.Join(strings.Fields(err.Error()), " "), status)
}
