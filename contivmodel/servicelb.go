package contivmodel

import (
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// ServiceLB is an address behind which the containers with certain labels share a
// load.
type ServiceLB struct {
	Key         string         `json:"key"`
	IPAddress   string         `json:"ipAddress,omitempty"` // the address wanted; empty: any
	NetworkName string         `json:"networkName,omitempty"`
	Ports       []string       `json:"ports,omitempty"`     // SERVICEPORT:PROVIDERPORT:PROTOCOL
	Selectors   []string       `json:"selectors,omitempty"` // KEY=VALUE
	ServiceName string         `json:"serviceName,omitempty"`
	TenantName  string         `json:"tenantName,omitempty"`
	Links       ServiceLBLinks `json:"links"`
}

// ServiceLBLinks are the objects a service stands on.
type ServiceLBLinks struct {
	Network Link `json:"Network"`
	Tenant  Link `json:"Tenant"`
}

// ServiceLBOper is who provides a service, under which address.
type ServiceLBOper struct {
	NumProviders int            `json:"numProviders,omitempty"`
	Providers    []EndpointOper `json:"providers,omitempty"`
	ServiceVip   string         `json:"serviceVip,omitempty"`
}

// ServiceLBType names the kind in links, store keys and errors.
const ServiceLBType = "serviceLB"

// ServiceLBKind describes services; the key is tenantName:serviceName.
func ServiceLBKind() Kind[ServiceLB, ServiceLBOper] {
	return Kind[ServiceLB, ServiceLBOper]{
		Type: ServiceLBType, Collection: "serviceLBs", names: []string{tenantName, "serviceName"},
		key:     func(s *ServiceLB) *string { return &s.Key },
		unlink:  func(s *ServiceLB) { s.Links = ServiceLBLinks{} },
		members: serviceFields(),
	}
}

func serviceFields() []member[ServiceLB] {
	return []member[ServiceLB]{
		{
			Field: Field{Name: "ipAddress", Text: "the requested IPv4 address; empty = any of the network", MaxBytes: 15, Format: "ipv4"},
			text:  func(s *ServiceLB) *string { return &s.IPAddress }, valid: isIP4,
		},
		name(member[ServiceLB]{
			Field: Field{Name: "networkName", Text: "the network of the service's address", Refers: NetworkType},
			text:  func(s *ServiceLB) *string { return &s.NetworkName },
			link:  func(s *ServiceLB) *Link { return &s.Links.Network },
		}, 64),
		{
			Field: Field{
				Name: "ports", Text: "SERVICEPORT:PROVIDERPORT:PROTOCOL, ports 1-65535, TCP or UDP; at least one",
				Required: true, Syntax: "SERVICEPORT:PROVIDERPORT:PROTOCOL",
			},
			list: func(s *ServiceLB) *[]string { return &s.Ports }, parse: ParseServicePort,
		},
		{
			Field: Field{
				Name: "selectors", Text: "KEY=VALUE, labels that providers have; at least one", Required: true, Syntax: "KEY=VALUE",
			},
			list: func(s *ServiceLB) *[]string { return &s.Selectors },
			parse: func(text string) (string, error) {
				_, _, err := ParseSelector(text)
				return text, err
			},
		},
		name(member[ServiceLB]{
			Field: Field{Name: "serviceName", Text: "the service's name"},
			text:  func(s *ServiceLB) *string { return &s.ServiceName },
		}, 256),
		tenantOf(func(s *ServiceLB) *string { return &s.TenantName }, func(s *ServiceLB) *Link { return &s.Links.Tenant }),
	}
}

// ParseServicePort checks SERVICEPORT:PROVIDERPORT:PROTOCOL, ports 1–65535, protocol
// TCP or UDP, and returns it with the protocol in upper case, as agents expect it.
func ParseServicePort(s string) (string, error) {
	parts := strings.Split(s, ":")
	ok := len(parts) == 3
	for i := 0; ok && i < 2; i++ {
		n, fine := decimal(parts[i], 5)
		ok = fine && 1 <= n && n <= 65535
	}
	if ok {
		switch parts[2] {
		case "TCP", "tcp", "Tcp", "UDP", "udp", "Udp":
			return strings.Join([]string{parts[0], parts[1], strings.ToUpper(parts[2])}, ":"), nil
		}
	}
	return "", errs.New(errs.Invalid, "ports: %q is not SERVICEPORT:PROVIDERPORT:PROTOCOL with ports 1-65535 and TCP or UDP", s)
}

// ParseSelector splits KEY=VALUE, which has exactly one equals sign and a key before it.
func ParseSelector(s string) (key, value string, err error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" || strings.Contains(value, "=") {
		return "", "", errs.New(errs.Invalid, "selectors: %q is not KEY=VALUE", s)
	}
	return key, value, nil
}
