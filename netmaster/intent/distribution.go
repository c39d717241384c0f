package intent

import (
	"context"

	"github.com/contiv/netplugin/state"
)

// DistributedEndpoint is an endpoint in the format of the original's distribution of
// endpoints, which tools know. Its time stamp is empty: the store orders changes.
type DistributedEndpoint struct {
	EndpointID        string // <ip>:<tenant>
	EndpointType      int    // 2: internal
	EndpointGroup     int
	IpAddr            string // name of the original
	IpMask            string // name of the original
	Ipv6Addr          string
	Ipv6Mask          string
	Vrf               string
	MacAddrStr        string
	Vlan              int
	Vni               int
	EndpointGroupVlan int
	OriginatorIp      string // name of the original
	OriginatorMac     string
	Timestamp         string // RFC 3339
}

// noTime is an empty time stamp.
const noTime = "0001-01-01T00:00:00Z"

// Distribution returns what agents implement: endpoints by id, and rules by rule id.
func (e *Engine) Distribution(ctx context.Context) (map[string]DistributedEndpoint, map[string]*state.PolicyRule, error) {
	hosts, err := e.vteps(ctx)
	if err != nil {
		return nil, nil, err
	}
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	endpoints := make(map[string]DistributedEndpoint, len(m.endpoints.base))
	for _, r := range m.endpoints.base {
		ep := m.distributed(r.v, hosts)
		endpoints[ep.EndpointID] = ep
	}
	rules := make(map[string]*state.PolicyRule, len(m.rules.records.base))
	for id, r := range m.rules.records.base {
		rules[id] = r.v
	}
	return endpoints, rules, nil
}

func (m *model) distributed(ep *state.Endpoint, hosts vteps) DistributedEndpoint {
	tenant := m.tenantOf(ep)
	d := DistributedEndpoint{
		EndpointID: ep.IPAddress + ":" + tenant, EndpointType: 2, EndpointGroup: ep.EndpointGroupID,
		IpAddr: ep.IPAddress, IpMask: "255.255.255.255", Ipv6Addr: ep.IPv6Address, Vrf: tenant, MacAddrStr: ep.MacAddress,
		OriginatorIp: hosts[ep.HomingHost], Timestamp: noTime,
	}
	if ep.IPv6Address != "" {
		d.Ipv6Mask = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	}
	if net, ok := m.networks.records.base[ep.NetID]; ok {
		d.Vlan, d.Vni, d.EndpointGroupVlan = net.v.PktTag, net.v.ExtPktTag, net.v.PktTag
	}
	if group, ok := m.groups.records.base[ep.EndpointGroupKey]; ok && group.v.PktTag != 0 {
		d.EndpointGroupVlan = group.v.PktTag
	}
	return d
}
