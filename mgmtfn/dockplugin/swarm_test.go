package dockplugin

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
)

// ownID is the id of a docker network of a swarm.
const ownID = "y3bqvykrkeizwoyvxl8vbhrxm"

// swarmAddresses: the manager of a swarm hands out the addresses of tasks, the node of a
// task asks for the same one again, and both give it back, in either order and after a
// restart of the agent. The docker networks "tagged" and ownID are there.
func (w *world) swarmAddresses() {
	w.t.Helper()
	manager := map[string]string{cnm.OptionSerial: "true"}
	request := func(pool, address string, options map[string]string) (string, error) {
		var got cnm.RequestAddressResponse
		err := call200(w.server, "/IpamDriver.RequestAddress", cnm.RequestAddressRequest{PoolID: pool, Address: address, Options: options}, &got)
		return got.Address, err
	}
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	claimed := func() []string {
		var all []string
		for _, network := range []string{"net1.default", ownID + ".default"} {
			for _, a := range w.keys(state.IPAMRoot + network + "/") {
				all = append(all, network+" "+a)
			}
		}
		return all
	}
	before := claimed()
	release := func(pool, address string) error {
		return call200(w.server, "/IpamDriver.ReleaseAddress", cnm.ReleaseAddressRequest{PoolID: pool, Address: address}, nil)
	}
	for pool, id := range map[string]string{"net1:web.default|10.1.1.0/24": "tagged", "10.5.1.0/24": ownID} {
		for i, restart := range []bool{false, true, false} {
			task := "task" + id + string(rune('0'+i))
			address, err := request(pool, "", manager)
			must(err)
			host, _, _ := strings.Cut(address, "/")
			for _, options := range []map[string]string{manager, nil} { // a manager that was restarted; the node
				if got, err := request(pool, host, options); err != nil || got != address {
					w.t.Errorf("%s of %s again: %s, %v", address, pool, got, err)
				}
			}
			end := func() {
				must(call200(w.server, "/NetworkDriver.DeleteEndpoint", cnm.EndpointRequest{NetworkID: id, EndpointID: task}, nil))
				must(release(pool, host))
			}
			req := cnm.CreateEndpointRequest{NetworkID: id, EndpointID: task, Interface: &cnm.EndpointInterface{Address: address}}
			must(call200(w.server, "/NetworkDriver.CreateEndpoint", req, nil))
			w.eventually("the task's endpoint is there", func() bool {
				return slices.ContainsFunc(w.agent.LocalEndpoints(), func(ep state.Endpoint) bool { return ep.EndpointID == task })
			})
			if restart {
				w.stop()
				w.start(func(c *Config) { c.Swarm = true })
			}
			if managerFirst := i == 2; managerFirst {
				must(release(pool, host))
				end()
				if diff := cmp.Diff(before, claimed()); diff != "" {
					w.t.Errorf("claims that are left (-before +after):\n%s", diff)
				}
				continue
			}
			end()
			other, err := request(pool, "", manager)
			must(err)
			if other == address {
				w.t.Errorf("%s is handed out twice", address)
			}
			must(release(pool, host)) // the manager's word
			again, err := request(pool, "", manager)
			must(err)
			if again != address {
				w.t.Errorf("%s was given back, and the next one is %s", address, again)
			}
			for _, a := range []string{other, again} {
				host, _, _ := strings.Cut(a, "/")
				must(release(pool, host))
			}
		}
	}
	if diff := cmp.Diff(before, claimed()); diff != "" {
		w.t.Errorf("claims that are left (-before +after):\n%s", diff)
	}
}
