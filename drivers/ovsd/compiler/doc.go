// Package compiler turns what is declared and observed on a host into the programs of its
// bridges: for each bridge and owner, flows, groups and meters.
//
// It is a pure function, Compile, that is computed incrementally. A setter replaces a row
// of the inputs and marks what follows from it, by one table (dependencies, in kinds.go).
// Step computes what is marked, kind by kind. A fact that comes out as before ends the
// matter; one that has changed marks what follows from it in turn. A property test holds
// that any changes in any order come to the programs of a fresh Compile, and that it finds
// a missing row of the table.
//
// The table, without those who are told (announcements, BGP, the host's plan, ports):
//
//	inputs                facts              programs
//
//	global ─┐
//	bridge ─┼───────────► pipeline ────────► all of them
//	cluster ┘
//	network ┬───────────────────────────────► network (and those that overlap), flood
//	        ├───────────► tenant here ─────► tenant; network, rule, service, endpoint, location
//	        └───────────► tenant seen ─────► services of all tenants
//	endpoint ┬──────────────────────────────► endpoint, policy, group VLAN, own node, host port
//	         ├──────────► tenant here
//	port ────┼──────────► address owner ───► endpoint
//	         ├──────────► location ────────► flood
//	         ├──────────► group tag ───────► group VLAN
//	         ├──────────► policy subject ──► tenant
//	         └──────────► rule set bridges ► rule set
//	rule ────┬──────────────────────────────► rule, tenant
//	         └──────────► tenant rules ────► endpoints of the tenant
//	service ────────────────────────────────► service
//	rule set ───────────────────────────────► rule set, tenants of those subject to it
//	policy peer ────────────────────────────► policy peer, tenant
//	endpoint policy ┬───────────────────────► policy, tenant
//	                ├───► policy subject ──► tenant
//	                │     └► subject bridges ► policy peers of the tenant
//	                └───► rule set bridges ► rule set
//	host ────┬──────────► peer ────────────► peer
//	         └──────────────────────────────► reach
//	control ports ──────────────────────────► reach
//	uplink ─────────────────────────────────► uplink
//	synced ─────────────────────────────────► tenants
//
// Most of what follows from objects of a tenant also needs the tenant to be here: its flows
// are in the bridges while the host has an endpoint of it, or other reasons (needs, in
// facts.go).
//
// A new feature adds a kind to kinds.go, its rows of the table, and its compile function to
// programs.go. A new field of an object adds nothing here, unless another kind follows
// from it.
package compiler
