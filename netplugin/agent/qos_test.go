package agent

import (
	"math"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

func TestKilobits(t *testing.T) {
	for text, want := range map[string]uint32{
		"": 0, "10 mbps": 10485, "10 Gbps": 10737418, "6gb": 6442450, "4m": 4194, "1k": 1, "0m": 0, "1Kbps": 1,
		"99999999999999999999g": math.MaxUint32,
	} {
		if got, err := kilobits(text); got != want || err != nil {
			t.Errorf("%q is %d, %v, expected %d kbit/s", text, got, err, want)
		}
	}
	for _, text := range []string{"m", "10", "fast", "-1m", "10 bps"} {
		if got, err := kilobits(text); got != 0 || err == nil {
			t.Errorf("%q is %d, expected an error", text, got)
		}
	}
}

// A container is limited and marked as its group says, from then on when it says
// otherwise; containers of other hosts are not this host's business.
func TestQoSFollowsTheGroup(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	group := state.EndpointGroup{ID: "web:default", Bandwidth: "10 mbps", Burst: 100, DSCP: 46}
	ep, far := endpoint(n, 1, "host1"), endpoint(n, 2, "host2")
	ep.EndpointGroupKey, far.EndpointGroupKey = group.ID, group.ID
	put(t, store, state.GlobalKey, global)
	put(t, store, state.HostRoot+"host2", state.Host{ID: "host2", VtepIP: "192.168.60.11"})
	put(t, store, state.NetworkRoot+n.ID, n)
	put(t, store, state.EndpointRoot+ep.ID, ep)
	put(t, store, state.EndpointRoot+far.ID, far)
	_, d, _ := start(t, store)
	is := func(want ofnet.QoS) func() bool {
		return func() bool {
			eps := d.State().Endpoints
			return len(eps) == 2 && eps[ep.ID].QoS == want && eps[far.ID].QoS == ofnet.QoS{}
		}
	}
	eventually.True(t, "none without the group", is(ofnet.QoS{}))
	put(t, store, state.GroupRoot+group.ID, group)
	eventually.True(t, "the group's", is(ofnet.QoS{Rate: 10485, Burst: 100, DSCP: 46}))
	group.Bandwidth, group.DSCP = "20 mbps", 0
	put(t, store, state.GroupRoot+group.ID, group)
	eventually.True(t, "changed", is(ofnet.QoS{Rate: 20971, Burst: 100}))
	group.Bandwidth, group.DSCP = "fast", 10
	put(t, store, state.GroupRoot+group.ID, group)
	eventually.True(t, "what can be read of it", is(ofnet.QoS{DSCP: 10}))
	commit(t, store, objdb.Delete(state.GroupRoot+group.ID))
	eventually.True(t, "none", is(ofnet.QoS{}))
	group.Bandwidth = "1g"
	put(t, store, state.GroupRoot+group.ID, group)
	ep.EndpointGroupKey = ""
	put(t, store, state.EndpointRoot+ep.ID, ep)
	eventually.True(t, "none after leaving the group", is(ofnet.QoS{}))
}
