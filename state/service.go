package state

import (
	"strconv"
	"strings"
)

// ServiceLB is a service as agents must realise it, under ServiceLBRoot + ID.
type ServiceLB struct {
	ID          string            `json:"id"` // <service>:<tenant>
	ServiceName string            `json:"servicename"`
	Tenant      string            `json:"tenantname"`
	Network     string            `json:"subnet"` // the network's name
	Ports       []string          `json:"ports"`  // SERVICEPORT:PROVIDERPORT:PROTOCOL, protocol TCP or UDP
	Selectors   map[string]string `json:"selectors"`
	IPAddress   string            `json:"ipaddress"` // where clients reach it
	// IPv6Address is the same by IPv6; empty unless the network has an IPv6 subnet.
	IPv6Address string              `json:"ipv6address,omitempty"`
	Providers   map[string]Provider `json:"providers"` // by <address>:<tenant>
}

// ServicePort reads an element of Ports: the service's port, the providers', and the protocol as
// it stands there. It is false for what is not of that form, with ports 1–65535.
func ServicePort(text string) (port, provider uint16, proto string, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, 0, "", false
	}
	own, err1 := strconv.ParseUint(parts[0], 10, 16)
	their, err2 := strconv.ParseUint(parts[1], 10, 16)
	return uint16(own), uint16(their), parts[2], err1 == nil && err2 == nil && own > 0 && their > 0
}

// Provider is a container that answers for a service.
type Provider struct {
	IPAddress   string            `json:"IPAddress"`
	ContainerID string            `json:"ContainerID"`
	Labels      map[string]string `json:"Labels"`
	Tenant      string            `json:"Tenant"`
	Network     string            `json:"Network"` // the network's name
	Services    []string          `json:"Services"`
	Container   string            `json:"Container"` // the endpoint's endpointID
	EpIDKey     string            `json:"EpIDKey"`   // the endpoint's id
}

// ProviderList is the addresses of a service's providers, under ProviderRoot + ID.
type ProviderList struct {
	ID          string   `json:"id"`          // <service>:<tenant>
	ServiceName string   `json:"ServiceName"` // the same
	Providers   []string `json:"Providers"`   // IPv4 addresses, sorted
}

// ServiceID is the service's name before its tenant's.
func ServiceID(service, tenant string) string { return service + ":" + tenant }

// SplitServiceID returns the names that a service's id is made of; no tenant if it is none.
func SplitServiceID(id string) (service, tenant string) {
	at := strings.LastIndexByte(id, ':')
	if at < 0 {
		return id, ""
	}
	return id[:at], id[at+1:]
}
