package api

import (
	"context"
	"net"
	"strconv"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
)

// distribution is the body of GET /debug/ofnet.
type distribution struct {
	MyAddr     string
	MyPort     int
	AgentDb    map[string]node // by ip:port
	EndpointDb map[string]intent.DistributedEndpoint
	PolicyDb   map[string]*state.PolicyRule
	AgentStats *struct{} // always null
}

// node is an end of the control channel.
type node struct {
	HostAddr string
	HostPort int
}

// describeDistribution shows what agents are there, and what they have to realise.
func describeDistribution(ctx context.Context, e *intent.Engine, members *cluster.Members) (*distribution, error) {
	endpoints, rules, err := e.Distribution(ctx)
	if err != nil {
		return nil, err
	}
	d := &distribution{MyAddr: members.Address(), MyPort: clusterapi.MasterPort, AgentDb: map[string]node{}, EndpointDb: endpoints, PolicyDb: rules}
	for _, h := range members.Hosts() {
		if h.State == clusterapi.Gone {
			continue
		}
		for _, port := range []int{clusterapi.AgentVXLANPort, clusterapi.AgentVLANPort} {
			d.AgentDb[net.JoinHostPort(h.VTEP, strconv.Itoa(port))] = node{HostAddr: h.VTEP, HostPort: port}
		}
	}
	return d, nil
}
