// Package endpoint manages the endpoints of this host for all container runtimes:
// netmaster's record of an endpoint and its port in the switch are created and removed
// together.
//
// A Manager creates record and port at the same time, removes both if one fails, and
// deletes endpoints. A container runtime does not have to wait for a netmaster that is
// down: the port is removed immediately, and the deletion of the record is queued and
// delivered when netmaster is back.
//
// An endpoint that nobody uses any more, because runtime, agent or host ended at the wrong
// moment, is an orphan. A Collector removes orphans after a grace period.
//
// What is specific to a runtime is elsewhere: network namespaces and the CNI protocol in
// mgmtfn/attachment, docker networks, address pools and swarms in mgmtfn/dockplugin.
package endpoint
