// Package services declares the Services of Kubernetes to the driver.
//
// What is declared follows from Services, EndpointSlices and Nodes, as the API server
// has them, and from the endpoints and networks of Contiv: translate is that function.
// A Watcher keeps lists of the objects, and declares again what a change may concern. A
// Service that the API server no longer has is found by comparing, however long the
// agent could not reach it.
//
// Containers of every tenant reach the address of a Service, but of the pods behind it
// those of their own tenant only; what is behind it on hosts, everybody reaches. Node
// ports, and addresses of load balancers with limited sources, are left to the node's
// own proxy, to which host access leads: that may be ours too (onNode, NodeProxy).
package services
