package agent

import (
	"testing"

	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// A group's own VLAN, which it has in an ACI fabric, is that of its endpoints here.
func TestGroupVLAN(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	n.PktTagType, n.PktTag, n.ExtPktTag = "vlan", 101, 0
	put(t, store, state.GlobalKey, global)
	put(t, store, state.NetworkRoot+n.ID, n)
	ep := endpoint(n, 1, "host1")
	ep.IPAddress, ep.MacAddress, ep.EndpointGroupKey = "10.1.0.1", "02:02:0a:01:00:01", "web:default"
	put(t, store, state.EndpointRoot+ep.ID, ep)
	_, d, _ := start(t, store)
	inVLAN := func(tag uint16) func() bool {
		return func() bool { e, ok := d.State().Endpoints[ep.ID]; return ok && e.VLAN() == tag }
	}
	group := func(tag int) {
		put(t, store, state.GroupRoot+"web:default", state.EndpointGroup{ID: "web:default", PktTagType: "vlan", PktTag: tag})
	}
	eventually.True(t, "in the network's", inVLAN(101))
	group(201)
	eventually.True(t, "in the group's", inVLAN(201))
	group(202)
	eventually.True(t, "in the group's new one", inVLAN(202))
	group(101)
	eventually.True(t, "in the network's again", inVLAN(101))
}
