// Package service says which endpoints provide a service. Providers follow from the
// labels of endpoints alone, so they can be computed again at any time.
package service

import (
	"maps"
	"slices"

	"github.com/contiv/netplugin/state"
)

// Matches reports whether labels have every selector, with the same value.
func Matches(selectors, labels map[string]string) bool {
	for k, want := range selectors {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	return true
}

// ProviderKey is the key of an endpoint among the providers of a service.
func ProviderKey(ep *state.Endpoint, tenant string) string { return ep.IPAddress + ":" + tenant }

// Provider is an endpoint of a tenant's network as a provider of a service.
func Provider(service string, ep *state.Endpoint, net *state.Network) state.Provider {
	return state.Provider{
		IPAddress: ep.IPAddress, ContainerID: ep.ContainerID, Labels: ep.Labels, Tenant: net.Tenant, Network: net.NetworkName,
		Services: []string{service}, Container: ep.EndpointID, EpIDKey: ep.ID,
	}
}

// List is the provider list that belongs to a service.
func List(s *state.ServiceLB) *state.ProviderList {
	l := &state.ProviderList{ID: s.ID, ServiceName: s.ID, Providers: []string{}}
	for _, p := range s.Providers {
		l.Providers = append(l.Providers, p.IPAddress)
	}
	slices.Sort(l.Providers)
	return l
}

// Equal reports whether two providers are the same.
func Equal(a, b state.Provider) bool {
	return a.IPAddress == b.IPAddress && a.ContainerID == b.ContainerID && a.Tenant == b.Tenant && a.Network == b.Network &&
		a.Container == b.Container && a.EpIDKey == b.EpIDKey && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Services, b.Services)
}
