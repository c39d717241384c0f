package dockerdtest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/plugin"

	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
)

// APIVersion is the version of the API that is served.
const APIVersion = "1.44"

// Serve serves the API of an Engine until the test ends, and returns the socket.
func Serve(t testing.TB, e *Engine) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: Handler(e)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return socket
}

// Handler serves the part of the API that dockerd.Client uses.
func Handler(e *Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", APIVersion) })
	mux.HandleFunc("GET /networks", func(w http.ResponseWriter, r *http.Request) {
		all, err := e.Networks(r.Context())
		out := make([]network.Summary, 0, len(all))
		for _, n := range all {
			out = append(out, network.Summary{Network: wireNetwork(n)})
		}
		reply(w, out, err)
	})
	mux.HandleFunc("POST /networks/create", func(w http.ResponseWriter, r *http.Request) {
		var req network.CreateRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			reply(w, nil, errs.Wrap(errs.Invalid, err))
			return
		}
		id, err := e.CreateNetwork(r.Context(), requested(req))
		reply(w, network.CreateResponse{ID: id}, err)
	})
	mux.HandleFunc("GET /networks/{id}", func(w http.ResponseWriter, r *http.Request) {
		n, err := e.Network(r.Context(), r.PathValue("id"))
		out := network.Inspect{Network: wireNetwork(n), Containers: map[string]network.EndpointResource{}}
		ids, _ := e.Endpoints(r.Context(), n.ID)
		for _, id := range ids {
			out.Containers["of-"+id] = network.EndpointResource{EndpointID: id}
		}
		reply(w, out, err)
	})
	mux.HandleFunc("DELETE /networks/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, err := e.Network(r.Context(), r.PathValue("id"))
		if err == nil {
			err = e.RemoveNetwork(r.Context(), r.PathValue("id"))
		}
		reply(w, nil, err)
	})
	mux.HandleFunc("GET /containers/json", func(w http.ResponseWriter, r *http.Request) {
		all, err := e.Containers(r.Context())
		out := make([]container.Summary, 0, len(all))
		for _, c := range all {
			out = append(out, wireContainer(c))
		}
		reply(w, out, err)
	})
	mux.HandleFunc("GET /plugins/{id}/json", func(w http.ResponseWriter, r *http.Request) {
		name, err := e.PluginName(r.Context(), r.PathValue("id"))
		reply(w, plugin.Plugin{Name: name}, err)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) { serveEvents(e, w, r) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/v"+APIVersion)
		mux.ServeHTTP(w, r)
	})
}

// serveEvents tells of a network event after every change.
func serveEvents(e *Engine, w http.ResponseWriter, r *http.Request) {
	first := true
	_ = e.Watch(r.Context(), func() {
		if !first { // a client knows that it is connected
			_ = json.NewEncoder(w).Encode(events.Message{Type: events.NetworkEventType, Action: events.ActionCreate})
		}
		first = false
		_ = http.NewResponseController(w).Flush()
	})
}

// statuses are how an Engine answers failures.
var statuses = map[errs.Kind]int{
	errs.Invalid: http.StatusBadRequest, errs.NotFound: http.StatusNotFound, errs.Exists: http.StatusConflict,
	errs.InUse: http.StatusForbidden, errs.Unavailable: http.StatusServiceUnavailable,
}

func reply(w http.ResponseWriter, body any, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if err != nil {
		if status = statuses[errs.KindOf(err)]; status == 0 {
			status = http.StatusInternalServerError
		}
		body = map[string]string{"message": err.Error()}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func wireNetwork(n dockerd.Network) network.Network {
	out := network.Network{
		ID: n.ID, Name: n.Name, Driver: n.Driver, Options: n.Options, Labels: n.Labels, EnableIPv4: true, EnableIPv6: n.IPv6, Internal: n.Internal,
		IPAM: network.IPAM{Driver: n.IPAMDriver, Options: n.IPAMOptions},
	}
	for _, s := range n.Subnets {
		out.IPAM.Config = append(out.IPAM.Config, network.IPAMConfig{Subnet: s.Prefix, Gateway: s.Gateway})
	}
	return out
}

func requested(req network.CreateRequest) dockerd.Network {
	n := dockerd.Network{Name: req.Name, Driver: req.Driver, Options: req.Options, Labels: req.Labels, Internal: req.Internal}
	n.IPv6 = req.EnableIPv6 != nil && *req.EnableIPv6
	if req.IPAM != nil {
		n.IPAMDriver, n.IPAMOptions = req.IPAM.Driver, req.IPAM.Options
		for _, c := range req.IPAM.Config {
			n.Subnets = append(n.Subnets, dockerd.Subnet{Prefix: c.Subnet, Gateway: c.Gateway})
		}
	}
	return n
}

func wireContainer(c dockerd.Container) container.Summary {
	out := container.Summary{
		ID: c.ID, Names: []string{"/linked/" + c.Name, "/" + c.Name}, Labels: c.Labels,
		NetworkSettings: &container.NetworkSettingsSummary{Networks: map[string]*network.EndpointSettings{}},
	}
	for _, at := range c.Attachments {
		out.NetworkSettings.Networks[at.NetworkName] = &network.EndpointSettings{NetworkID: at.NetworkID, EndpointID: at.EndpointID, IPAddress: at.IPv4}
	}
	out.NetworkSettings.Networks["created"] = &network.EndpointSettings{IPAddress: netip.Addr{}} // not attached yet
	return out
}
