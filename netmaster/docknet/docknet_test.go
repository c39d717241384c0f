package docknet_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/docknet"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	records "github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/dockerd/dockerdtest"
	"github.com/contiv/netplugin/utils/errs"
)

// engine is a Docker Engine that can be told to fail requests.
type engine struct {
	*dockerdtest.Engine

	mu     sync.Mutex
	refuse map[string]error // by name: cannot be made or removed
}

func newEngine() *engine {
	e := &engine{refuse: map[string]error{}}
	refused := func(n dockerd.Network) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.refuse[n.Name]
	}
	e.Engine = dockerdtest.New(dockerdtest.Plugin{Create: refused, Remove: refused})
	return e
}

// refuseTo has every request to create or to remove a network fail; nil: none.
func (e *engine) refuseTo(name string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse[name] = err
}

func (e *engine) has(name string) bool {
	n, ok := e.Named(name)
	return ok && n.Driver == "netplugin"
}

// cluster is a leading netmaster whose Engines share networks.
type cluster struct {
	t      *testing.T
	store  *memory.Store
	api    *client.Client
	engine *engine
}

func start(t *testing.T, mode string, shared bool) *cluster {
	t.Helper()
	c := &cluster{t: t, store: memory.New(), engine: newEngine()}
	cfg := apitest.Config(apitest.Log(t))
	cfg.ClusterMode, cfg.Docker = mode, daemon.Docker{Driver: "netplugin"}
	if shared {
		cfg.Docker.Shared = c.engine
	}
	var err error
	if c.api, err = client.New(client.Config{URLs: []string{apitest.Start(t, c.store, cfg)}}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) network(name, subnet string) error {
	_, err := client.Put(c.t.Context(), c.api, contivmodel.NetworkKind(), &contivmodel.Network{TenantName: "default", NetworkName: name, Subnet: subnet, Encap: "vxlan"})
	return err
}

func (c *cluster) group(name, network string) error {
	_, err := client.Put(c.t.Context(), c.api, contivmodel.EndpointGroupKind(), &contivmodel.EndpointGroup{TenantName: "default", GroupName: name, NetworkName: network})
	return err
}

func (c *cluster) remove(network string) error {
	return client.Delete(c.t.Context(), c.api, contivmodel.NetworkKind(), "default:"+network)
}

func (c *cluster) keys(root string) []string {
	c.t.Helper()
	kvs, _, err := c.store.List(c.t.Context(), root)
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, kv := range kvs {
		out = append(out, strings.TrimPrefix(kv.Key, root))
	}
	return out
}

// TestShared: when a request has been answered, its docker network exists and is recorded.
func TestShared(t *testing.T) {
	c := start(t, "docker", true)
	if err := c.network("net1", "10.1.1.0/24"); err != nil {
		t.Fatal(err)
	}
	if err := c.group("web", "net1"); err != nil {
		t.Fatal(err)
	}
	if !c.engine.has("net1") || !c.engine.has("web") {
		t.Error("a docker network is missing")
	}
	if diff := cmp.Diff([]string{"default.net1.", "default.net1.web"}, c.keys(records.Root)); diff != "" {
		t.Errorf("records:\n%s", diff)
	}
	kv, err := c.store.Get(t.Context(), records.Root+"default.net1.web")
	made, _ := c.engine.Named("web")
	want := `{"id":"default.net1.web","tenantName":"default","networkName":"net1","serviceName":"web","docknetUUID":"` + made.ID + `"}`
	if err != nil || string(kv.Value) != want {
		t.Errorf("record %s, %v, want %s", kv.Value, err, want)
	}
	if err := client.Delete(t.Context(), c.api, contivmodel.EndpointGroupKind(), "default:web"); err != nil {
		t.Fatal(err)
	}
	if err := c.remove("net1"); err != nil {
		t.Fatal(err)
	}
	if c.engine.has("net1") || c.engine.has("web") || len(c.keys(records.Root)) > 0 {
		t.Errorf("left: %v", c.keys(records.Root))
	}
}

// TestSharedRefusals: if the Engine rejects a request, nothing changes.
func TestSharedRefusals(t *testing.T) {
	c := start(t, "docker", true)
	c.engine.Put(dockerd.Network{ID: "t", Name: "taken", Driver: "macvlan"})
	c.engine.refuseTo("bad", errs.New(errs.Invalid, "no such thing"))
	for name, want := range map[string]string{"taken": "network name used by another driver", "bad": "no such thing"} {
		if err := c.network(name, "10.2.1.0/24"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("create %s: %v, want %q", name, err, want)
		}
		if _, err := client.Get(t.Context(), c.api, contivmodel.NetworkKind(), "default:"+name); err == nil {
			t.Errorf("network %s is there although its docker network is not", name)
		}
	}
	if err := c.network("used", "10.3.1.0/24"); err != nil {
		t.Fatal(err)
	}
	c.engine.refuseTo("used", errs.New(errs.InUse, "network used has active endpoints"))
	if err := c.remove("used"); err == nil || !strings.Contains(err.Error(), "active endpoints") {
		t.Errorf("remove a docker network in use: %v", err)
	}
	if _, err := client.Get(t.Context(), c.api, contivmodel.NetworkKind(), "default:used"); err != nil || len(c.keys(records.Root)) != 1 {
		t.Errorf("network used: %v, records %v, want both as before", err, c.keys(records.Root))
	}
	c.engine.refuseTo("used", nil)
	if err := c.remove("used"); err != nil {
		t.Error(err)
	}
}

// TestSharedWithoutEngine: netmaster's host may have no Engine; one that starts later gets
// all docker networks.
func TestSharedWithoutEngine(t *testing.T) {
	c := start(t, "docker", true)
	c.engine.SetDown(errs.New(errs.Unavailable, "no dockerd"))
	if err := c.network("net1", "10.1.1.0/24"); err != nil {
		t.Fatal(err)
	}
	c.engine.SetDown(nil)
	if err := c.network("net2", "10.2.1.0/24"); err != nil {
		t.Fatal(err)
	}
	if !c.engine.has("net1") || !c.engine.has("net2") {
		t.Error("a docker network is missing after the Engine has come")
	}
}

// TestHosts: a request waits for agents, but not forever.
func TestHosts(t *testing.T) { synctest.Test(t, testHosts) }

func testHosts(t *testing.T) {
	store := memory.New()
	defer store.Close()
	put := func(key string, v any) {
		t.Helper()
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
			t.Fatal(err)
		}
	}
	const patience = time.Hour
	hosts := docknet.Hosts{Store: store, Patience: patience}
	network := func(name string) state.NetworkRef { return state.NetworkRef{Tenant: "default", Network: name} }
	// settle starts waiting; the returned function reports whether it has ended, and how
	// long it took.
	settle := func(name string) func() (bool, time.Duration) {
		start, done := time.Now(), make(chan error, 1)
		go func() { done <- hosts.Settle(t.Context(), network(name)) }()
		return func() (bool, time.Duration) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("network %s: %v", name, err)
				}
				return true, time.Since(start)
			default:
				return false, time.Since(start)
			}
		}
	}
	if over, _ := settle("net1")(); !over {
		t.Error("Settle waits although no host is registered")
	}
	for _, h := range []string{"host1", "host2"} {
		put(state.ServiceRoot+"netplugin/"+h+":9002", objdb.ServiceInfo{ServiceName: "netplugin", Hostname: h})
	}

	settled := settle("net1")
	put(records.HostRoot+"host1/x", records.NewRecord(network("net1"), dockerd.Network{ID: "x"}))
	put(records.HostRoot+"host2/other", records.NewRecord(network("net2"), dockerd.Network{ID: "other"}))
	if over, _ := settled(); over {
		t.Error("Settle did not wait for the docker network of host2")
	}
	put(records.HostRoot+"host2/y", records.NewRecord(network("net1"), dockerd.Network{ID: "y"}))
	if over, took := settled(); !over || took != 0 {
		t.Errorf("Settle waits although both hosts have the docker network: %t after %s", over, took)
	}

	put(records.HostRoot+"host1/"+records.NoEngine, struct{}{})
	put(records.HostRoot+"host2/z", records.NewRecord(network("net3"), dockerd.Network{ID: "z"}))
	if over, _ := settle("net3")(); !over {
		t.Error("Settle waits for a host without an Engine")
	}

	slow := settle("net4")
	time.Sleep(patience - time.Second)
	if over, _ := slow(); over {
		t.Error("Settle gave up early")
	}
	time.Sleep(time.Second)
	if over, took := slow(); !over || took != patience {
		t.Errorf("Settle waits for agents that do not answer: %t after %s, expected an end after %s", over, took, patience)
	}
}

// TestMapped: in a swarm, an object for which a docker network exists cannot be deleted.
func TestMapped(t *testing.T) {
	c := start(t, "swarm-mode", false)
	if err := c.network("net1", "10.1.1.0/24"); err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(records.NewRecord(state.NetworkRef{Tenant: "default", Network: "net1"}, dockerd.Network{ID: "swarm"}))
	if err != nil {
		t.Fatal(err)
	}
	key := records.Root + "default.net1."
	if _, err := c.store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
		t.Fatal(err)
	}
	if err := c.remove("net1"); err == nil || !strings.Contains(err.Error(), "docker network rm") {
		t.Errorf("remove: %v", err)
	}
	if _, err := c.store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(key)}}); err != nil {
		t.Fatal(err)
	}
	if err := c.remove("net1"); err != nil {
		t.Error(err)
	}
	if err := c.network("net1", "10.1.1.0/24"); err != nil {
		t.Fatal(err)
	}
	freed := []byte(`{"id":"default.net1.","tenantName":"default","networkName":"net1","docknetUUID":"swarm","freed":true}`)
	if _, err := c.store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, freed)}}); err != nil {
		t.Fatal(err)
	}
	if err := c.remove("net1"); err != nil {
		t.Errorf("what a docker network stood for that is gone: %v", err)
	}
}
