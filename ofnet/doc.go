// Package ofnet turns networks and endpoints into the flows of an Open vSwitch bridge,
// and keeps a bridge's flows equal to what was asked for. It knows nothing of
// containers, orchestrators or the store.
//
// # Flow programs
//
// A Pipeline is a pure function from an object to flows. It is put together from
// features; a feature owns the rows of a few tables:
//
//	classify   which port, network and VRF does the packet come from?
//	tunnel     is it from a host of the cluster? which network is it of?  (VXLAN)
//	frame      may a container send such a frame at all?
//	source     does a container send under its own addresses?
//	neighbor  is it ARP or neighbor discovery?
//	arp, nd    answer for addresses that are known
//	dns        DNS queries of containers are passed to the agent
//	service    connections to a service go to one of its providers, and back
//	route      which endpoint has the destination address?        (routing modes)
//	endpoint-policy  do the policies of the endpoint allow it? (before the rules)
//	reach      is it for a port of the control plane on a host?   (vlan modes)
//	policy     do the rules allow it? (before or after the route)
//	reject     the agent answers rejected packets, at a bounded rate
//	hop        is it another network? then one hop less to live   (routing modes)
//	deliver    out of the port the route has chosen               (routing modes)
//	uplink     from and to the links beyond the uplinks           (vlan routing mode)
//	external   which route leads to what is no endpoint?          (vlan routing mode)
//	mac        which endpoint has the destination MAC? else flood (vxlan bridge mode)
//	switch     let the bridge learn and forward by MAC            (vlan bridge mode)
//
// A feature answers one question: which rows does this Object need in your tables? A
// forwarding mode is a choice of configured features (modes.go). The tables, their order and
// their stages are one list (tables.go), and so is what registers hold (registers.go).
// docs/pipeline.md is made from these and walks a packet through every mode;
// docs/howto/add-a-feature.md shows how to add a feature.
//
// # Reconciling
//
// A Switch holds, per object, the flows, groups and meters that are wanted. It dumps what the bridge has
// when it connects, and sends only the difference, as bundles that apply whole or not
// at all. So an agent that restarts, or a channel that breaks, costs no packet.
package ofnet
