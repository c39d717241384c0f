package dockplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/dockerd/dockerdtest"
	"github.com/contiv/netplugin/utils/errs"
)

// world is a cluster of one host: a real netmaster and a real agent over a store in memory,
// a driver that moves no packets, and an Engine that behaves like a real one towards
// plugins.
type world struct {
	t      testing.TB
	store  *memory.Store
	api    *client.Client
	leader *memory.Store // holds the lock as the agent sees it
	url    string
	driver *fakedriver.Driver
	agent  *agent.Agent
	master *cluster.Master
	engine *engine
	server *Server
	stop   func() // ends the server
	log    logrus.FieldLogger
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, store: memory.New(), leader: memory.New(), driver: fakedriver.New(), engine: newEngine()}
	log := logrus.New()
	log.SetOutput(t.Output())
	w.log = log
	cfg := apitest.Config(log)
	c := Config{Scope: ScopeLocal}
	for _, f := range change {
		f(&c)
	}
	cfg.ClusterMode = "docker"
	if c.Swarm {
		cfg.ClusterMode = "swarm-mode"
	}
	w.url = apitest.Start(t, w.store, cfg)
	w.lead(true)
	var err error
	if w.api, err = client.New(client.Config{URLs: []string{w.url}}); err != nil {
		t.Fatal(err)
	}
	w.master = cluster.NewMaster(nil)
	w.agent = agent.New(agent.Config{
		HostLabel: "host1", VTEP: netip.MustParseAddr("192.168.60.10"), CtrlIP: netip.MustParseAddr("192.168.2.10"),
		FwdMode: "routing", Store: w.store, Master: w.master, Driver: w.driver, Log: log,
	})
	w.background(func(ctx context.Context) { _ = w.agent.Run(ctx) })
	w.background(func(ctx context.Context) { _ = w.master.Follow(ctx, w.leader) })
	w.start(change...)
	t.Cleanup(func() { w.stop() })
	return w
}

// background runs f until the test ends.
func (w *world) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
}

// lead makes a netmaster visible to the agent, or hides it.
func (w *world) lead(there bool) {
	op := objdb.Delete(state.LeaderKey)
	if there {
		op = objdb.Put(state.LeaderKey, []byte(strings.TrimPrefix(w.url, "http://")))
	}
	if _, err := w.leader.Commit(context.Background(), objdb.Txn{Then: []objdb.Op{op}}); err != nil {
		w.t.Fatal(err)
	}
}

// start runs a server like a started agent.
func (w *world) start(change ...func(*Config)) {
	cfg := Config{
		HostLabel: "host1", Driver: "netplugin", Scope: ScopeLocal, Store: w.store, Master: w.master, Agent: w.agent,
		Ports: w.driver, Engine: w.engine, Log: w.log,
	}
	for _, f := range change {
		f(&cfg)
	}
	w.server = NewServer(cfg)
	w.engine.use(w.server)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s := w.server
	socket := w.t.TempDir() + "/netplugin.sock"
	go func() {
		defer close(done)
		if err := s.Run(ctx, socket); err != nil {
			w.t.Errorf("run: %v", err)
		}
	}()
	w.stop = func() { cancel(); <-done }
}

func (w *world) network(name, subnet, gateway string, change ...func(*contivmodel.Network)) {
	w.t.Helper()
	n := &contivmodel.Network{TenantName: "default", NetworkName: name, Subnet: subnet, Gateway: gateway, Encap: "vxlan"}
	for _, f := range change {
		f(n)
	}
	if n.TenantName != "default" {
		if _, err := client.Put(w.t.Context(), w.api, contivmodel.TenantKind(), &contivmodel.Tenant{TenantName: n.TenantName}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := client.Put(w.t.Context(), w.api, contivmodel.NetworkKind(), n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) group(name, network string, change ...func(*contivmodel.EndpointGroup)) {
	w.t.Helper()
	g := &contivmodel.EndpointGroup{TenantName: "default", GroupName: name, NetworkName: network}
	for _, f := range change {
		f(g)
	}
	if _, err := client.Put(w.t.Context(), w.api, contivmodel.EndpointGroupKind(), g); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits for something that must happen.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	eventually.True(w.t, what, ok)
}

// keys lists the keys below a prefix of the store.
func (w *world) keys(prefix string) []string {
	w.t.Helper()
	kvs, _, err := w.store.List(context.Background(), prefix)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, kv := range kvs {
		out = append(out, strings.TrimPrefix(kv.Key, prefix))
	}
	return out
}

// call calls the server as an Engine does. into may be nil.
func call200(s *Server, path string, req, into any) error {
	status, body := post(s, path, req)
	if status == http.StatusOK && into != nil {
		return json.Unmarshal(body, into)
	}
	if status != http.StatusOK {
		var e cnm.Error
		if err := json.Unmarshal(body, &e); err != nil || e.Err == "" || e.Err != e.Error {
			return fmt.Errorf("%s: an error that is none: %d %s", path, status, body)
		}
		return fmt.Errorf("%s: %d %s", path, status, e.Err)
	}
	return nil
}

func post(s *Server, path string, req any) (int, []byte) {
	body, err := json.Marshal(req)
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec.Code, rec.Body.Bytes()
}

// engine is a Docker Engine that makes the calls of an Engine 20.10.
type engine struct {
	*dockerdtest.Engine

	mu     sync.Mutex
	server *Server
	pools  map[string][]string // ids of pools, by network id
}

type engineNetwork struct {
	dockerd.Network
	pools []string // ids
}

func newEngine() *engine {
	e := &engine{pools: map[string][]string{}}
	e.Engine = dockerdtest.New(dockerdtest.Plugin{Create: e.create, Remove: e.removeNetwork})
	e.Install(strings.Repeat("0", 64), "contiv/v2plugin:latest")
	return e
}

func (e *engine) use(s *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server = s
}

func (e *engine) plugin() *Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server
}

// down makes the Engine refuse all requests, or serve again.
func (e *engine) down(down bool) {
	if down {
		e.SetDown(errs.New(errs.Unavailable, "no Engine"))
		return
	}
	e.SetDown(nil)
}

func (e *engine) named(name string) *engineNetwork {
	n, ok := e.Named(name)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return &engineNetwork{n, e.pools[n.ID]}
}

// create asks for pools and gateways first, as an Engine does.
func (e *engine) create(n dockerd.Network) error {
	s := e.plugin()
	generic := map[string]any{}
	for k, v := range n.Options {
		generic[k] = v
	}
	req := cnm.CreateNetworkRequest{NetworkID: n.ID, Options: map[string]any{
		cnm.OptionGeneric: generic, cnm.OptionInternal: n.Internal, "com.docker.network.enable_ipv6": n.IPv6,
	}}
	subnets := n.Subnets
	if len(subnets) == 0 {
		subnets = []dockerd.Subnet{{}}
	}
	var pools []string
	for _, subnet := range subnets {
		var pool cnm.RequestPoolResponse
		ask := cnm.RequestPoolRequest{Options: n.IPAMOptions, V6: subnet.Prefix.IsValid() && subnet.Prefix.Addr().Is6()}
		if subnet.Prefix.IsValid() {
			ask.Pool = subnet.Prefix.String()
		}
		if err := call200(s, "/IpamDriver.RequestPool", ask, &pool); err != nil {
			return err
		}
		var gw cnm.RequestAddressResponse
		want := cnm.RequestAddressRequest{PoolID: pool.PoolID, Options: map[string]string{cnm.OptionAddressType: cnm.AddressTypeGateway}}
		if subnet.Gateway.IsValid() {
			want.Address = subnet.Gateway.String()
		}
		if err := call200(s, "/IpamDriver.RequestAddress", want, &gw); err != nil {
			return err
		}
		pools = append(pools, pool.PoolID)
		data := cnm.IPAMData{AddressSpace: "contiv", Pool: pool.Pool, Gateway: gw.Address}
		if ask.V6 {
			req.IPv6Data = append(req.IPv6Data, data)
		} else {
			req.IPv4Data = append(req.IPv4Data, data)
		}
	}
	e.mu.Lock()
	e.pools[n.ID] = pools
	e.mu.Unlock()
	return call200(s, "/NetworkDriver.CreateNetwork", req, nil)
}

func (e *engine) removeNetwork(n dockerd.Network) error {
	s := e.plugin()
	if err := call200(s, "/NetworkDriver.DeleteNetwork", cnm.NetworkRequest{NetworkID: n.ID}, nil); err != nil {
		return err
	}
	e.mu.Lock()
	pools := e.pools[n.ID]
	e.mu.Unlock()
	for _, pool := range pools {
		if err := call200(s, "/IpamDriver.ReleasePool", cnm.ReleasePoolRequest{PoolID: pool}, nil); err != nil {
			return err
		}
	}
	return nil
}

// run starts a container in a network; wantIP may be empty.
func (e *engine) run(name, network, wantIP string, labels map[string]string) (at dockerd.Attachment, joined cnm.JoinResponse, err error) {
	n := e.named(network)
	if n == nil {
		return at, joined, fmt.Errorf("network %s not found", network)
	}
	s := e.plugin()
	at = dockerd.Attachment{NetworkID: n.ID, NetworkName: network, EndpointID: e.ID("ep")}
	create := cnm.CreateEndpointRequest{NetworkID: n.ID, EndpointID: at.EndpointID, Interface: &cnm.EndpointInterface{}}
	var given []cnm.ReleaseAddressRequest
	undo := func() {
		for _, g := range given {
			_ = call200(s, "/IpamDriver.ReleaseAddress", g, nil)
		}
	}
	for i, pool := range n.pools {
		ask := cnm.RequestAddressRequest{PoolID: pool}
		if i == 0 {
			ask.Address = wantIP
		}
		var got cnm.RequestAddressResponse
		if err := call200(s, "/IpamDriver.RequestAddress", ask, &got); err != nil {
			undo()
			return at, joined, err
		}
		p := netip.MustParsePrefix(got.Address)
		given = append(given, cnm.ReleaseAddressRequest{PoolID: pool, Address: p.Addr().String()})
		if p.Addr().Is4() {
			create.Interface.Address, at.IPv4 = got.Address, p.Addr()
		} else {
			create.Interface.AddressIPv6 = got.Address
		}
	}
	var created cnm.CreateEndpointResponse
	if err := call200(s, "/NetworkDriver.CreateEndpoint", create, &created); err != nil {
		undo()
		return at, joined, err
	}
	if i := created.Interface; i == nil || i.Address != "" || i.AddressIPv6 != "" {
		return at, joined, fmt.Errorf("CreateEndpoint answers addresses it was given: %+v", i)
	}
	if err := call200(s, "/NetworkDriver.Join", cnm.JoinRequest{NetworkID: n.ID, EndpointID: at.EndpointID, SandboxKey: "/var/run/docker/netns/x"}, &joined); err != nil {
		_ = call200(s, "/NetworkDriver.DeleteEndpoint", cnm.EndpointRequest{NetworkID: n.ID, EndpointID: at.EndpointID}, nil)
		undo()
		return at, joined, err
	}
	e.Start(dockerd.Container{ID: "id-" + name, Name: name, Labels: labels, Attachments: []dockerd.Attachment{at}})
	return at, joined, nil
}

// remove is docker rm -f.
func (e *engine) remove(name string) error {
	c, _ := e.Container(name)
	s := e.plugin()
	for _, at := range c.Attachments {
		req := cnm.EndpointRequest{NetworkID: at.NetworkID, EndpointID: at.EndpointID}
		for _, call := range []string{"RevokeExternalConnectivity", "Leave", "DeleteEndpoint"} {
			if err := call200(s, "/NetworkDriver."+call, req, nil); err != nil {
				return err
			}
		}
		for _, pool := range e.named(at.NetworkName).pools {
			if id, _ := parsePoolID(pool); id.pool.Contains(at.IPv4) {
				if err := call200(s, "/IpamDriver.ReleaseAddress", cnm.ReleaseAddressRequest{PoolID: pool, Address: at.IPv4.String()}, nil); err != nil {
					return err
				}
			}
		}
	}
	e.Stop(name)
	return nil
}

// lose forgets a container without any call, as an Engine that was killed.
func (e *engine) lose(name string) { e.Stop(name) }
