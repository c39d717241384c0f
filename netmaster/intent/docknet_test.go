package intent

import (
	"slices"
	"testing"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

// TestDockerNetwork: an object's docker network is one of those of the topology, found by the
// key of the object; infra networks and what does not exist have none.
func TestDockerNetwork(t *testing.T) {
	e, _, stop := lead(t, memory.New())
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	e.mustPut(t, e.networks(), "default:i", `{"tenantName":"default","networkName":"i","encap":"vxlan","nwType":"infra","subnet":"10.1.2.0/24"}`)
	e.mustPut(t, e.groups(), "default:g", `{"tenantName":"default","groupName":"g","networkName":"n"}`)
	for _, c := range []struct {
		typ, key string
		want     state.NetworkRef
	}{
		{contivmodel.NetworkType, "default:n", state.NetworkRef{Tenant: "default", Network: "n"}},
		{contivmodel.EndpointGroupType, "default:g", state.NetworkRef{Tenant: "default", Network: "n", Group: "g"}},
		{contivmodel.NetworkType, "default:i", state.NetworkRef{}},
		{contivmodel.NetworkType, "default:g", state.NetworkRef{}},
		{contivmodel.EndpointGroupType, "default:n", state.NetworkRef{}},
		{contivmodel.TenantType, "default", state.NetworkRef{}},
	} {
		got, ok := e.DockerNetwork(c.typ, c.key)
		if ok != (c.want != state.NetworkRef{}) || ok && got != c.want {
			t.Errorf("%s %s: %v, %t; want %v", c.typ, c.key, got, ok, c.want)
		}
	}
	topology, _ := e.Topology()
	if !slices.ContainsFunc(topology.Groups, func(g state.EndpointGroup) bool { return g.GroupName == "g" }) {
		t.Errorf("topology %+v", topology)
	}
}
