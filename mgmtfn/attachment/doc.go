// Package attachment attaches containers to networks and detaches them, for runtimes
// that hand over a network namespace (CNI): it creates the endpoint (mgmtfn/endpoint),
// configures the interface inside the namespace and waits until the switch forwards for it. Servers for orchestrators decode what they are asked,
// call an Attacher, and encode the answer.
//
// An attachment is identified by container id and interface name, never by the name of
// what runs inside: after a host has crashed, the deletion of the old container and the
// addition of the new one come in either order.
package attachment
