package endpoint

import (
	"strings"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
)

// Endpoint is an endpoint of this host, known from its record, its port or both.
type Endpoint struct {
	ID   string // of the record: <network>.<tenant>-<name>
	Name string // inside its network
	// Network is zero if the network is gone and the port does not name it.
	Network state.NetworkRef
	Record  *state.Endpoint     // nil: none is known
	Port    *drivers.Attachment // nil: there is none
}

// At is the endpoint with a name in a network, whether it exists or not.
func At(ref state.NetworkRef, name string) Endpoint {
	return Endpoint{ID: state.EndpointID(ref.NetworkID(), name), Name: name, Network: ref}
}

// Name is the name of the endpoint of a container's interface: the container's id for the
// first one, with the interface's name after it for further ones.
func Name(containerID, ifName string) string {
	if ifName == "" || ifName == "eth0" {
		return containerID
	}
	return containerID + "-" + ifName
}

// Named returns the endpoints with a name on this host, by id: one in each network with
// such a record or port.
func (m *Manager) Named(name string) map[string]Endpoint {
	return m.find(func(n string) bool { return n == name })
}

// All returns the endpoints of this host's containers, by id.
func (m *Manager) All() map[string]Endpoint { return m.find(func(string) bool { return true }) }

func (m *Manager) find(wanted func(name string) bool) map[string]Endpoint {
	out := map[string]Endpoint{}
	for _, rec := range m.cfg.Agent.LocalEndpoints() {
		own := rec.EndpointID == "" || rec.EndpointID == m.cfg.HostLabel // of the host itself
		if own || !wanted(rec.EndpointID) || rec.ID != state.EndpointID(rec.NetID, rec.EndpointID) {
			continue
		}
		ref := m.ref(rec.NetID)
		ref.Group = rec.ServiceName
		out[rec.ID] = Endpoint{ID: rec.ID, Name: rec.EndpointID, Network: ref, Record: &rec}
	}
	for _, at := range m.cfg.Ports.Attachments() {
		name := Name(at.ContainerID, at.IfName)
		netID, ok := strings.CutSuffix(at.EndpointID, "-"+name)
		if !ok || at.ContainerID == "" || !wanted(name) {
			continue
		}
		e, listed := out[at.EndpointID]
		if !listed {
			e = Endpoint{ID: at.EndpointID, Name: name, Network: m.ref(netID)}
		}
		if e.Network.Network == "" && state.NetworkID(at.Network, at.Tenant) == netID {
			e.Network.Tenant, e.Network.Network = at.Tenant, at.Network
		}
		e.Port = &at
		out[at.EndpointID] = e
	}
	return out
}

// ref returns a network's parts if its record is known.
func (m *Manager) ref(netID string) state.NetworkRef {
	n, ok := m.cfg.Agent.KnownNetwork(netID)
	if !ok {
		return state.NetworkRef{}
	}
	return state.NetworkRef{Tenant: n.Tenant, Network: n.Name}
}
