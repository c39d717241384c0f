// Package records keeps what the watch of the store delivers, once and packed, and passes on to
// the parts of an agent what concerns its host: everything of tenants that the host has something
// of, and what belongs to no tenant or is little (hosts, networks, groups, BGP speakers). So
// the parts keep nothing of the other tenants' endpoints, rules and services.
//
// A tenant is here under the condition under which the driver needs its flows
// (docs/decisions/0038-tenants-elsewhere.md): the host has an endpoint of it, or the tenant has a network
// on the VLAN bridge, or the host needs all tenants. When a tenant comes to be here, all its
// records are added; when it leaves, all are deleted: for the parts, the store has
// exactly the records that they are to know. Nothing is read from the store for that, as it may be down.
//
// Records are packed as they came, compressed together by network or tenant: they are alike,
// so that of 400 bytes some 30 are left.
package records
