// Package k8spolicy enforces, for the pods of this host, the NetworkPolicies of a Kubernetes
// cluster (networking.k8s.io/v1).
//
// A policy selects pods of its namespace and lists, for connections to them or from
// them, whom and which ports it allows. A pod that some policy selects for a direction
// is isolated in it: what none of these policies allows is denied. So the policies of a
// pod add up, in any order; there is nothing to deny with.
//
// ClusterState holds what policies depend on: Namespaces, Pods and NetworkPolicies. Compile
// makes of it, for the pods of this host alone, endpoint policies and the sets of connections they
// refer to; pods that the same policies select share a set. As peers, pods that no rule tells
// apart are a class: sets name classes, and addresses have one (docs/decisions/0041). It is a function of the
// cluster state and has no side effects. Controller keeps a ClusterState equal to the API server's,
// and the driver equal to what it compiles to. Nothing asks netmaster.
package k8spolicy
