// Package ovsd implements networks and endpoints with Open vSwitch: bridges and ports
// through OVSDB, forwarding through the flow programs of package ofnet.
//
// The database records what exists on the host: the external_ids of a port name the
// endpoint it belongs to, so an agent that starts finds everything its predecessor attached
// and leaves it alone.
//
// What is declared (networks, endpoints, settings) and what the database reports (port
// numbers) are inputs of package compiler, which computes the programs of each bridge. A
// setter replaces a row of these inputs. One goroutine, drain, recomputes what depends on
// it and passes it to the switches, which keep their bridges equal to it; it also notifies
// the other components of changes:
//
//	Apply, Delete, Synced ─┐                           ┌─► ofnet.Switch of each bridge
//	                       ├─► inputs ─► drain ────────┼─► announcer, router (BGP)
//	OVSDB monitor ─────────┘                           └─► hostnet (plan), keepBridges (ports, VLANs, takeover)
package ovsd
