// Package state holds the typed records netmaster and the agents exchange through
// the store, and the keys they stand under. JSON member names are part of Contiv's
// outward surface and must not change.
//
//	/contiv.io/master/config/global             Global, written by the leader
//	/contiv.io/state/nets/<net>.<tenant>        Network
//	/contiv.io/state/endpointGroups/<grp>:<ten> EndpointGroup
//	/contiv.io/state/eps/<net>.<tenant>-<id>    Endpoint
//	/contiv.io/state/policyRule/<rule id>       PolicyRule
//	/contiv.io/state/bgp/<host label>           Bgp
//	/contiv.io/state/serviceLB/<svc>:<tenant>   ServiceLB
//	/contiv.io/state/provider/<svc>:<tenant>    ProviderList
//	/contiv.io/state/hosts/<host label>         Host, as the agent of that host says
//	/contiv.io/state/ipam/<net>.<tenant>/<addr> AddressClaim; netmaster only
//	/contiv.io/state/tags/<pool>/<tag>          TagClaim; netmaster only
//	/contiv.io/oper/eps/<endpoint id>           OperEndpoint, as agents say
//	/contiv.io/oper/ovs-driver/<host label>     OperDriver, of earlier agents
//
// What can be counted from other records (endpoints of a network, addresses in use)
// is not stored: it is counted.
package state

import "strings"

// Key prefixes. Every one ends in a slash, so that no prefix covers a sibling.
const (
	Root           = "/contiv.io/"
	StateRoot      = Root + "state/"
	OperRoot       = Root + "oper/"
	ModelRoot      = Root + "obj/modeldb/"
	ServiceRoot    = Root + "service/"
	LockRoot       = Root + "lock/"
	AuthRoot       = Root + "auth/" // users, tokens, revocations; agents cannot read it
	LeaderKey      = LockRoot + "netmaster/leader"
	GlobalKey      = Root + "master/config/global"
	NetworkRoot    = StateRoot + "nets/"
	EndpointRoot   = StateRoot + "eps/"
	GroupRoot      = StateRoot + "endpointGroups/"
	PolicyRuleRoot = StateRoot + "policyRule/"
	BgpRoot        = StateRoot + "bgp/"
	ServiceLBRoot  = StateRoot + "serviceLB/"
	ProviderRoot   = StateRoot + "provider/"
	HostRoot       = StateRoot + "hosts/"
	IPAMRoot       = StateRoot + "ipam/"
	TagRoot        = StateRoot + "tags/"
	OperEndpointRt = OperRoot + "eps/"
	OperDriverRoot = OperRoot + "ovs-driver/"
	LateReleasesRt = OperRoot + "netmaster/releases/"
)

// NetworkID, GroupID and EndpointID build the ids under which records stand.
func NetworkID(network, tenant string) string { return network + "." + tenant }

// SplitNetworkID returns the names that a network's id is made of, if none of them has a dot:
// otherwise only the network's record tells them.
func SplitNetworkID(id string) (network, tenant string) {
	network, tenant, _ = strings.Cut(id, ".")
	return network, tenant
}

// GroupID is the group's name before its tenant's, the reverse of the model key.
func GroupID(group, tenant string) string { return group + ":" + tenant }

// EndpointID is the network's id and the container's, joined by a hyphen.
func EndpointID(networkID, container string) string { return networkID + "-" + container }
