package contivmodel

import (
	"fmt"

	"github.com/contiv/netplugin/state"
)

// EndpointOper is an endpoint as inspect requests show it. Endpoints have no
// configuration of their own.
type EndpointOper struct {
	Key              string    `json:"key,omitempty"` // the search text; in endpoint inspect only
	ContainerID      string    `json:"containerID,omitempty"`
	ContainerName    string    `json:"containerName,omitempty"`
	EndpointGroupID  int       `json:"endpointGroupId,omitempty"`
	EndpointGroupKey string    `json:"endpointGroupKey,omitempty"` // <group>:<tenant>
	EndpointID       string    `json:"endpointID,omitempty"`
	HomingHost       string    `json:"homingHost,omitempty"`
	IntfName         string    `json:"intfName,omitempty"`
	IPAddress        [2]string `json:"ipAddress"` // IPv4, IPv6 or ""
	Labels           string    `json:"labels,omitempty"`
	MacAddress       string    `json:"macAddress,omitempty"`
	Network          string    `json:"network,omitempty"` // <network>.<tenant>
	ServiceName      string    `json:"serviceName,omitempty"`
	VirtualPort      string    `json:"virtualPort,omitempty"` // in endpoint inspect only
	VtepIP           string    `json:"vtepIP,omitempty"`
}

// EndpointInspection is the answer to an endpoint inspect request.
type EndpointInspection struct {
	Oper EndpointOper `json:"Oper"`
}

// The names of the endpoint collection, which has no kind: it can only be inspected.
const (
	EndpointType       = "endpoint"
	EndpointCollection = "endpoints"
)

// NewEndpointOper shows an endpoint's record; vtep is the tunnel address of its host,
// empty while unknown.
func NewEndpointOper(e *state.Endpoint, vtep string) EndpointOper {
	return EndpointOper{
		ContainerID:      e.ContainerID,
		ContainerName:    e.EPCommonName,
		EndpointGroupID:  e.EndpointGroupID,
		EndpointGroupKey: e.EndpointGroupKey,
		EndpointID:       e.EndpointID,
		HomingHost:       e.HomingHost,
		IntfName:         e.IntfName,
		IPAddress:        [2]string{e.IPAddress, e.IPv6Address},
		Labels:           fmt.Sprint(e.Labels), // map[] or map[k1:v1 k2:v2], keys sorted
		MacAddress:       e.MacAddress,
		Network:          e.NetID,
		ServiceName:      e.ServiceName,
		VtepIP:           vtep,
	}
}
