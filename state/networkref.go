package state

// NetworkRef names a network, and perhaps a group of endpoints in it, by the parts of its
// name. The names of tenants and networks may have dots, so the parts cannot be told from
// a network's id: carry a NetworkRef where they are needed.
type NetworkRef struct{ Tenant, Network, Group string }

// NetworkID is the id of the network's record.
func (r NetworkRef) NetworkID() string { return NetworkID(r.Network, r.Tenant) }
