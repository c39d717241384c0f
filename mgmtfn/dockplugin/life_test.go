package dockplugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/dockerd"
)

// endpoints waits until the store has n endpoints.
func (w *world) endpoints(n int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d endpoints", n), func() bool {
		return len(w.keys(state.EndpointRoot)) == n && len(w.driver.Attachments()) == n && len(w.agent.LocalEndpoints()) == n
	})
}

// TestNetworksFollow: the Engine has a docker network for each existing network and group.
func TestNetworksFollow(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254", func(n *contivmodel.Network) { n.IPv6Subnet = "2001:db8:1::/100" })
	w.network("net2", "10.2.1.0/24", "", func(n *contivmodel.Network) { n.TenantName = "blue" })
	w.network("infra", "10.3.1.0/24", "", func(n *contivmodel.Network) { n.NwType = "infra" })
	w.group("web", "net1")
	w.eventually("docker networks", func() bool {
		return w.engine.named("net1") != nil && w.engine.named("net2/blue") != nil && w.engine.named("web") != nil
	})
	got := w.engine.named("web").Network
	want := dockerd.Network{
		ID: got.ID, Name: "web", Driver: "netplugin", IPAMDriver: "netplugin", IPv6: true,
		Subnets:     w.engine.named("net1").Subnets,
		IPAMOptions: map[string]string{"tenant": "default", "network": "net1", "group": "web"},
		Options:     map[string]string{"tenant": "default", "network": "net1", "group": "web", "encap": "vxlan", "pkt-tag": "1", "contiv-tag": "web.default"},
		Labels:      map[string]string{docknet.Label: "default.net1.web"},
	}
	if diff := cmp.Diff(want.Options, got.Options) + cmp.Diff(want.IPAMOptions, got.IPAMOptions) + cmp.Diff(want.Labels, got.Labels); diff != "" || !docknet.Same(want, got) {
		t.Errorf("docker network of a group:\n%s%+v", diff, got)
	}
	if w.engine.named("infra") != nil {
		t.Error("an infra network has a docker network")
	}
	w.eventually("the docker networks are noted", func() bool { return len(w.keys(docknet.HostRoot+"host1/")) == 3 })
	if err := client.Delete(t.Context(), w.api, contivmodel.EndpointGroupKind(), "default:web"); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), w.api, contivmodel.NetworkKind(), "default:net1"); err != nil {
		t.Fatal(err)
	}
	w.eventually("docker networks go", func() bool {
		return w.engine.named("net1") == nil && w.engine.named("web") == nil && len(w.keys(docknet.HostRoot+"host1/")) == 1
	})
}

// TestHandMadeNetworks: networks created by users are recognized and left alone; one with
// our name that stands for something else is a conflict.
func TestHandMadeNetworks(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	make := func(n dockerd.Network) string {
		t.Helper()
		n.Driver, n.IPAMDriver = "netplugin", "netplugin"
		id, err := w.engine.CreateNetwork(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	make(dockerd.Network{Name: "mine", Internal: true, IPAMOptions: map[string]string{"tenant": "default", "network": "net1"}})
	make(dockerd.Network{Name: "tagged", Options: map[string]string{"contiv-tag": "net1.default"}, IPAMOptions: map[string]string{"contiv-tag": "net1.default"}})
	for _, name := range []string{"mine", "tagged"} {
		at, joined, err := w.engine.run("c-"+name, name, "", nil)
		if err != nil {
			t.Fatalf("container in %s: %v", name, err)
		}
		want := map[string]string{"mine": "", "tagged": "10.1.1.254"}[name]
		if joined.Gateway != want {
			t.Errorf("gateway in %s is %q, want %q", name, joined.Gateway, want)
		}
		if id := "net1.default-" + at.EndpointID; !slices.Contains(w.keys(state.EndpointRoot), id) {
			t.Errorf("no endpoint %s", id)
		}
	}
	if err := w.engine.remove("c-mine"); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.remove("c-tagged"); err != nil {
		t.Fatal(err)
	}
	w.endpoints(0)
	if err := client.Delete(t.Context(), w.api, contivmodel.NetworkKind(), "default:net1"); err != nil {
		t.Fatal(err)
	}
	w.eventually("ours goes", func() bool { return w.engine.named("net1") == nil })
	if w.engine.named("mine") == nil || w.engine.named("tagged") == nil {
		t.Error("a docker network made by hand has gone")
	}
}

// TestForeignName: another driver's network of the same name is a conflict until it is
// removed; others are created meanwhile.
func TestForeignName(t *testing.T) {
	w := newWorld(t)
	w.engine.Put(dockerd.Network{ID: "x", Name: "net1", Driver: "macvlan"})
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.network("net2", "10.2.1.0/24", "10.2.1.254")
	w.eventually("the other is made", func() bool { return w.engine.named("net2") != nil })
	if got := w.engine.named("net1").Driver; got != "macvlan" {
		t.Errorf("the other driver's network has driver %s", got)
	}
	w.engine.Drop("x")
	w.eventually("it is made when the name is free", func() bool {
		n := w.engine.named("net1")
		return n != nil && n.Driver == "netplugin"
	})
}

// TestStaleNetworkIsReplaced: a docker network of ours that no longer matches is created
// again.
func TestStaleNetworkIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.engine.Put(dockerd.Network{
		ID: "old", Name: "net1", Driver: "netplugin", IPAMDriver: "netplugin",
		Options:     map[string]string{"tenant": "default", "encap": "vxlan", "pkt-tag": "77"},
		IPAMOptions: map[string]string{"tenant": "default", "network": "net1"},
	})
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("it is replaced", func() bool {
		n := w.engine.named("net1")
		return n != nil && n.ID != "old" && n.Options["pkt-tag"] == "1"
	})
}

func TestContainer(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254", func(n *contivmodel.Network) { n.IPv6Subnet, n.IPv6Gateway = "2001:db8:1::/100", "2001:db8:1::fe" })
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	at, joined, err := w.engine.run("c1", "net1", "", map[string]string{"app": "db"})
	if err != nil {
		t.Fatal(err)
	}
	if at.IPv4.String() != "10.1.1.1" || joined.InterfaceName != (cnm.InterfaceName{SrcName: "vport1", DstPrefix: "eth"}) ||
		joined.Gateway != "10.1.1.254" || joined.GatewayIPv6 != "2001:db8:1::fe" {
		t.Errorf("container at %v: %+v", at.IPv4, joined)
	}
	// The same call again, as after a lost reply.
	create := cnm.CreateEndpointRequest{NetworkID: at.NetworkID, EndpointID: at.EndpointID, Interface: &cnm.EndpointInterface{Address: "10.1.1.1/24", AddressIPv6: "2001:db8:1::1/100"}}
	status, body := post(w.server, "/NetworkDriver.CreateEndpoint", create)
	if want := `{"Interface":{"MacAddress":"02:02:0a:01:01:01"}}`; status != 200 || strings.TrimSpace(string(body)) != want {
		t.Errorf("CreateEndpoint again: %d %s, want %s", status, body, want)
	}
	w.eventually("netmaster knows the container", func() bool {
		for _, ep := range w.agent.LocalEndpoints() {
			if ep.ContainerID == "id-c1" && ep.EPCommonName == "c1" && ep.Labels["app"] == "db" {
				return true
			}
		}
		return false
	})
	for range 2 { // repeated deletions are not errors
		if err := call200(w.server, "/NetworkDriver.DeleteEndpoint", cnm.EndpointRequest{NetworkID: at.NetworkID, EndpointID: at.EndpointID}, nil); err != nil {
			t.Error(err)
		}
	}
	w.endpoints(0)
}

func TestPresetMAC(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	id := w.engine.named("net1").ID
	for i, c := range []struct{ iface, option, answer, mac string }{
		{"02:aa:00:00:00:01", "", `{"Interface":{}}`, "02:aa:00:00:00:01"},
		{"", "02:aa:00:00:00:02", `{"Interface":{"MacAddress":"02:aa:00:00:00:02"}}`, "02:aa:00:00:00:02"},
	} {
		req := cnm.CreateEndpointRequest{NetworkID: id, EndpointID: fmt.Sprint("e", i), Interface: &cnm.EndpointInterface{MacAddress: c.iface}}
		if c.option != "" {
			req.Options = map[string]any{cnm.OptionMAC: c.option}
		}
		status, body := post(w.server, "/NetworkDriver.CreateEndpoint", req)
		if status != 200 || strings.TrimSpace(string(body)) != c.answer {
			t.Errorf("CreateEndpoint: %d %s, want %s", status, body, c.answer)
		}
		w.eventually("the endpoint has the MAC address", func() bool {
			for _, ep := range w.agent.LocalEndpoints() {
				if ep.EndpointID == req.EndpointID && ep.MacAddress == c.mac {
					return true
				}
			}
			return false
		})
	}
	bad := cnm.CreateEndpointRequest{NetworkID: id, EndpointID: "e9", Interface: &cnm.EndpointInterface{MacAddress: "01:00:5e:00:00:01"}}
	if err := call200(w.server, "/NetworkDriver.CreateEndpoint", bad, nil); err == nil || !strings.Contains(err.Error(), "MacAddress") {
		t.Errorf("a multicast address: %v", err)
	}
}

// TestFailedEndpointLeavesNothing: if the interface cannot be created, netmaster's record
// and the address are removed.
func TestFailedEndpointLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	w.driver.FailAttach(errAlone)
	if _, _, err := w.engine.run("c1", "net1", "", nil); err == nil || !strings.Contains(err.Error(), "Could not create endpoint") {
		t.Errorf("a container without an interface: %v", err)
	}
	w.driver.FailAttach(nil)
	w.endpoints(0)
	if diff := cmp.Diff([]string{"net1.default/10.1.1.254"}, w.keys(state.IPAMRoot)); diff != "" {
		t.Errorf("addresses:\n%s", diff)
	}
}

// TestRestartWithoutEngine: containers start before the Engine can be asked for the name of
// a docker network; the agent has it stored.
func TestRestartWithoutEngine(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network is noted", func() bool {
		return w.engine.named("net1") != nil && len(w.keys(docknet.HostRoot+"host1/")) == 1
	})
	w.stop()
	w.engine.down(true)
	w.start()
	if _, _, err := w.engine.run("c1", "net1", "", nil); err != nil {
		t.Fatal(err)
	}
	w.endpoints(1)
}

// TestMasterUnavailable: containers are removed while no netmaster is the leader, and start when
// one is.
func TestMasterUnavailable(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	for i := range 3 {
		if _, _, err := w.engine.run(fmt.Sprint("c", i), "net1", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	w.lead(false)
	w.eventually("nobody leads", func() bool { return w.master.Leader() == "" })
	for i := range 3 {
		if err := w.engine.remove(fmt.Sprint("c", i)); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	if n := len(w.driver.Attachments()); n != 0 {
		t.Errorf("%d ports are left", n)
	}
	w.lead(true)
	w.endpoints(0)
	if diff := cmp.Diff([]string{"net1.default/10.1.1.254"}, w.keys(state.IPAMRoot)); diff != "" {
		t.Errorf("addresses:\n%s", diff)
	}
}

// TestLostContainers: what an Engine has forgotten when it was killed is removed.
func TestLostContainers(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	for _, name := range []string{"stays", "lost"} {
		if _, _, err := w.engine.run(name, "net1", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	w.endpoints(2)
	// Without a grace period containers that are about to start are lost, too.
	w.stop()
	w.start(func(c *Config) { c.Grace = time.Nanosecond })
	w.engine.lose("lost")
	w.eventually("the lost one's endpoint goes", func() bool {
		w.server.engine.wake()
		return len(w.keys(state.EndpointRoot)) == 1 && len(w.driver.Attachments()) == 1
	})
	w.eventually("the agent knows the other one alone", func() bool { // it follows the store
		eps := w.agent.LocalEndpoints()
		return len(eps) == 1 && eps[0].EPCommonName == "stays"
	})
}

// TestProviders: labels make a container a provider of a service until it ends.
func TestProviders(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	lb := &contivmodel.ServiceLB{TenantName: "default", ServiceName: "db", NetworkName: "net1", Ports: []string{"5432:5432:TCP"}, Selectors: []string{"app=db"}}
	if _, err := client.Put(t.Context(), w.api, contivmodel.ServiceLBKind(), lb); err != nil {
		t.Fatal(err)
	}
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	if _, _, err := w.engine.run("c1", "net1", "", map[string]string{"app": "db"}); err != nil {
		t.Fatal(err)
	}
	provided := func() bool {
		kv, err := w.store.Get(t.Context(), state.ServiceLBRoot+"db:default")
		return err == nil && strings.Contains(string(kv.Value), "id-c1")
	}
	w.eventually("the container provides", provided)
	if err := w.engine.remove("c1"); err != nil {
		t.Fatal(err)
	}
	w.eventually("it does not any more", func() bool { return !provided() })
}

func TestSwarm(t *testing.T) {
	swarm := func(c *Config) { c.Swarm = true }
	w := newWorld(t, swarm)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.group("web", "net1", func(g *contivmodel.EndpointGroup) { g.CfgdTag = "webtag" })
	w.known(state.NetworkRef{Tenant: "default", Network: "net1", Group: "web"})
	alloc := func(req cnm.AllocateNetworkRequest) error {
		return call200(w.server, "/NetworkDriver.AllocateNetwork", req, nil)
	}
	if err := alloc(cnm.AllocateNetworkRequest{NetworkID: "tagged", Options: map[string]string{"contiv-tag": "webtag"}}); err != nil {
		t.Fatal(err)
	}
	own := cnm.AllocateNetworkRequest{NetworkID: ownID, IPv4Data: []cnm.IPAMData{{Pool: "10.5.1.0/24", Gateway: "10.5.1.254/24"}}}
	for range 2 {
		if err := alloc(own); err != nil {
			t.Fatal(err)
		}
		w.known(state.NetworkRef{Tenant: "default", Network: ownID})
	}
	if err := alloc(cnm.AllocateNetworkRequest{NetworkID: "x"}); err == nil || !strings.Contains(err.Error(), "--subnet") {
		t.Errorf("neither tag nor subnet: %v", err)
	}
	w.eventually("both are noted", func() bool {
		return slices.Equal(w.keys(docknet.Root), []string{"default.net1.web", "default." + ownID + "."})
	})
	// A task of the service, on a node that did not allocate it.
	var made cnm.CreateEndpointResponse
	if err := call200(w.server, "/NetworkDriver.CreateEndpoint", cnm.CreateEndpointRequest{NetworkID: "tagged", EndpointID: "task"}, &made); err != nil {
		t.Fatal(err)
	}
	w.eventually("the task is in the group", func() bool {
		eps := w.agent.LocalEndpoints()
		return len(eps) == 1 && eps[0].EndpointGroupKey == "web:default"
	})
	w.swarmAddresses()
	last := cnm.CreateEndpointRequest{NetworkID: ownID, EndpointID: "last"}
	if err := call200(w.server, "/NetworkDriver.CreateEndpoint", last, &made); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := call200(w.server, "/NetworkDriver.FreeNetwork", cnm.NetworkRequest{NetworkID: ownID}, nil); err != nil {
			t.Error(err)
		}
	}
	if !slices.Contains(w.keys(state.NetworkRoot), ownID+".default") {
		t.Error("the network has gone before its last task")
	}
	if err := call200(w.server, "/NetworkDriver.DeleteEndpoint", cnm.EndpointRequest{NetworkID: ownID, EndpointID: "last"}, nil); err != nil {
		t.Error(err)
	}
	w.engine.Notify() // the container has died
	w.eventually("the network has gone", func() bool {
		return !slices.Contains(w.keys(state.NetworkRoot), ownID+".default") && slices.Equal(w.keys(docknet.Root), []string{"default.net1.web"})
	})
}

// TestNothingLeaks runs containers and removes them, loses some, restarts the server and
// stops netmaster, at random. In the end only the gateways remain.
func TestNothingLeaks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		t.Run("", func(t *testing.T) {
			w := newWorld(t)
			w.network("net1", "10.1.1.0/28", "10.1.1.14")
			w.network("net2", "10.2.1.0/24", "")
			w.group("web", "net1")
			nets := []string{"net1", "net2", "web"}
			w.eventually("docker networks", func() bool {
				return !slices.ContainsFunc(nets, func(n string) bool { return w.engine.named(n) == nil })
			})
			running := []string{}
			for i := range rapid.IntRange(5, 25).Draw(rt, "steps") {
				switch rapid.IntRange(0, 9).Draw(rt, "what") {
				case 0, 1, 2, 3, 4:
					name := fmt.Sprint("c", i)
					_, _, err := w.engine.run(name, rapid.SampledFrom(nets).Draw(rt, "net"), "", nil)
					if err == nil {
						running = append(running, name)
					} else if !strings.Contains(err.Error(), "exhaust") {
						t.Error(err)
					}
				case 5, 6, 7:
					if len(running) > 0 {
						if err := w.engine.remove(running[0]); err != nil {
							t.Error(err)
						}
						running = running[1:]
					}
				case 8:
					w.stop()
					w.start()
				case 9:
					if len(running) > 0 {
						w.engine.lose(running[0])
						running = running[1:]
					}
				}
			}
			for _, name := range running {
				if err := w.engine.remove(name); err != nil {
					t.Error(err)
				}
			}
			w.stop()
			w.start(func(c *Config) { c.Grace = time.Nanosecond })
			w.eventually("nothing is left", func() bool {
				w.server.engine.wake()
				return len(w.keys(state.EndpointRoot)) == 0 && len(w.driver.Attachments()) == 0 && slices.Equal(w.keys(state.IPAMRoot), []string{"net1.default/10.1.1.14"})
			})
		})
	})
}

// TestRemoveNetworks: a clean-up removes what agents have created, and nothing else.
func TestRemoveNetworks(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	mine := dockerd.Network{Name: "mine", Driver: "netplugin", IPAMDriver: "netplugin", IPAMOptions: map[string]string{"network": "net1"}}
	if _, err := w.engine.CreateNetwork(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	socketless := w.server
	w.stop()
	w.engine.use(socketless) // which still answers
	for _, dryRun := range []bool{true, false} {
		var said []string
		if err := RemoveNetworks(t.Context(), w.engine, "netplugin", dryRun, func(what string) { said = append(said, what) }); err != nil {
			t.Error(err)
		}
		if !slices.Equal(said, []string{"docker network net1"}) || (w.engine.named("net1") != nil) != dryRun {
			t.Errorf("dry run %t: said %v, network is there: %t", dryRun, said, w.engine.named("net1") != nil)
		}
	}
	if w.engine.named("mine") == nil {
		t.Error("a docker network made by hand has gone")
	}
}
