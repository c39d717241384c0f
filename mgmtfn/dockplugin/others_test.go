package dockplugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
)

// locals is an agent that knows endpoints of its host, and nothing else.
type locals struct {
	Agent
	records []state.Endpoint
}

func (l locals) LocalEndpoints() []state.Endpoint                { return l.records }
func (l locals) KnownNetwork(string) (_ drivers.Network, _ bool) { return }

// Containers of another runtime on the host are left alone, although the Engine does not
// know them.
func TestContainersOfOtherRuntimesStay(t *testing.T) {
	driver := fakedriver.New()
	agent := locals{}
	for _, at := range []drivers.Attachment{
		{EndpointID: "n.default-engines", ContainerID: "engines"},
		{EndpointID: "n.default-alive", ContainerID: "alive"},
		{EndpointID: "n.default-task", ContainerID: "task", IfName: "eth0", Netns: "/run/mesos/task/ns"},
	} {
		if _, err := driver.Attach(t.Context(), at, ofnet.VXLAN, 1); err != nil {
			t.Fatal(err)
		}
		agent.records = append(agent.records, state.Endpoint{ID: at.EndpointID, NetID: "n.default", EndpointID: at.ContainerID})
	}
	for _, records := range [][]state.Endpoint{agent.records, nil} { // by record, and by port alone
		s := &Server{cfg: Config{HostLabel: "host1"}}
		s.endpoints = endpoint.New(endpoint.Config{HostLabel: "host1", Agent: locals{records: records}, Ports: driver})
		c := newCollector(s)
		var got []string
		for id := range s.endpoints.Orphans(func(e endpoint.Endpoint) bool { return c.alive(e, map[string]bool{"alive": true}) }) {
			got = append(got, id)
		}
		if diff := cmp.Diff([]string{"n.default-engines"}, got); diff != "" {
			t.Errorf("with %d records (-want +got):\n%s", len(records), diff)
		}
	}
}
