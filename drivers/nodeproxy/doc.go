// Package nodeproxy load-balances connections to Services that begin at this node, or reach
// it from outside, to their providers: by the node's own nftables (nft(8)), in one table.
// What containers send to Services is the switch's, and comes here only for addresses of
// nodes and for what the switch leaves to the node.
//
// A Service is a list of frontends: an address, or every address of the node, with a protocol
// and a port, and the backend sets for clients from inside and from outside. compile makes a
// program of them, a value: chains, sets, and elements of maps, so that finding a frontend
// costs the same however many there are. Chains and sets bear names that follow from what
// is in them and never change; a change adds others, points elements at them, and removes
// the old ones, in one transaction. What is in the kernel is thus known by its names, and
// a restarted agent touches nothing that is right already: neither connections nor the
// clients that a provider has kept.
//
//	gates      before translation: who is refused, or not to hear anything
//	services   frontends with an address: translate the destination
//	nodeports  frontends of every address of the node
//	to the world and between containers: translate the source as well
//
// Connections to containers need no translation of their source: answers come back to
// the node by the switch (drivers/ovsd), which is why providers see whom they talk to.
package nodeproxy
