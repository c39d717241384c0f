package state

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
