// Package rights says what agents may read in the store, in terms that every kind of store
// enforces: the embedded one itself, etcd by a role, Consul by a policy. They write nothing
// (decision 0034).
package rights

import (
	"slices"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// AgentReads lists the prefixes: what hosts have to realise, the global settings, who leads,
// who is registered; and what agents had written for them, which they find again after a
// restart.
func AgentReads() []string {
	return slices.Clone(agentReads[:])
}

var agentReads = [...]string{
	state.StateRoot, state.GlobalKey, state.LeaderKey, state.ServiceRoot, state.OperEndpointRt, docknet.Root, docknet.HostRoot,
}
