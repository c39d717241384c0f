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

// ServiceLBKind describes services; the key is tenantName:serviceName.
func ServiceLBKind() Kind[ServiceLB, ServiceLBOper] {
	return Kind[ServiceLB, ServiceLBOper]{
		Type:       "serviceLB",
		Collection: "serviceLBs",
		key:        func(s *ServiceLB) *string { return &s.Key },
		ident:      func(s *ServiceLB) string { return s.TenantName + ":" + s.ServiceName },
		unlink:     func(s *ServiceLB) { s.Links = ServiceLBLinks{} },
		check:      checkServiceLB,
	}
}

func checkServiceLB(s *ServiceLB, c *checker) {
	c.limit("ipAddress", s.IPAddress, 15)
	if s.IPAddress != "" {
		_, ok := ParseIP4(s.IPAddress)
		c.format("ipAddress", ok)
	}
	c.name("networkName", s.NetworkName, 64)
	c.name("serviceName", s.ServiceName, 256)
	c.name("tenantName", s.TenantName, 64)
	if c.err != nil {
		return
	}
	if len(s.Ports) == 0 {
		c.fail("ports", "is empty: expected at least one SERVICEPORT:PROVIDERPORT:PROTOCOL")
	}
	for i, text := range s.Ports {
		p, err := ParseServicePort(text)
		if err != nil {
			c.err = err
			return
		}
		s.Ports[i] = p
	}
	if len(s.Selectors) == 0 {
		c.fail("selectors", "is empty: expected at least one KEY=VALUE")
	}
	for _, text := range s.Selectors {
		if _, _, err := ParseSelector(text); err != nil && c.err == nil {
			c.err = err
		}
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
