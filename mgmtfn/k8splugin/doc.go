// Package k8splugin attaches containers for CNI runtimes. The binary contivk8s, which
// the runtime executes, passes each call on over a unix socket; the Server here has
// the endpoint created by netmaster, hands out a port of the driver, configures the
// interface inside the container's network namespace and waits until the switch
// forwards for it.
//
// An attachment is identified by container id and interface name, never by the name of
// a pod: after a node has crashed, the deletion of the old sandbox and the addition of
// the new one come in either order.
package k8splugin
