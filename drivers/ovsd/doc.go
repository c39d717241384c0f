// Package ovsd realises networks and endpoints with Open vSwitch: bridges and ports
// through OVSDB, forwarding through the flow programs of package ofnet.
//
// The database is the memory of what exists on the host: a port carries, in its
// external_ids, the endpoint it belongs to, so an agent that starts finds everything
// its predecessor attached and touches none of it.
//
// What is declared (networks, endpoints, settings) and what the database reports (port
// numbers) are inputs of package compiler, which makes the programs of each bridge from
// them. A setter replaces a row of these inputs. One goroutine, drain, computes what follows
// and hands it to the switches, which keep their bridges equal to it; it also tells the
// others that what they look at has changed:
//
//	Apply, Delete, Synced ─┐                           ┌─► ofnet.Switch of each bridge
//	                       ├─► inputs ─► drain ────────┼─► announcer, router (BGP)
//	OVSDB monitor ─────────┘                           └─► hostnet (plan), keepBridges (ports, VLANs, takeover)
package ovsd
