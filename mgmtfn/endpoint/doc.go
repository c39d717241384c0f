// Package endpoint is the life of an endpoint of this host, whichever container runtime
// asks for it: netmaster's record of it and its port in the switch come and go together.
//
// A Manager creates an endpoint, record and port at the same time, leaves nothing of one
// that could not be created, and removes it. A container runtime is not kept waiting for a
// netmaster that is down: the port goes at once, and the deletion of the record is queued
// and delivered when netmaster is back.
//
// What nobody has any more, because runtime, agent or host ended at the wrong moment, is
// an orphan. A Collector removes orphans after a grace period.
//
// What is special to a runtime is elsewhere: network namespaces and the words of CNI in
// mgmtfn/attachment, docker networks, address pools and swarms in mgmtfn/dockplugin.
package endpoint
