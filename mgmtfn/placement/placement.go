// Package placement reads from labels which network a container belongs to: its own labels,
// those of its pod, or those of the pod's namespace.
package placement

import (
	"cmp"

	"github.com/contiv/netplugin/state"
)

// Labels by which a container, or the pod or the namespace it is in, names its network. In
// Kubernetes they may be annotations as well.
const (
	LabelTenant  = "io.contiv.tenant"
	LabelNetwork = "io.contiv.network"
	LabelGroup   = "io.contiv.net-group"
)

// The defaults.
const (
	DefaultTenant  = "default"
	DefaultNetwork = "default-net"
)

// Labelled is the network that labels name; parts that they do not name are empty.
func Labelled(labels map[string]string) state.NetworkRef { return Annotated(labels, nil) }

// Annotated is Labelled for an object that may have annotations instead of labels. A label
// has precedence.
func Annotated(labels, annotations map[string]string) state.NetworkRef {
	look := func(key string) string { return cmp.Or(labels[key], annotations[key]) }
	return state.NetworkRef{Tenant: look(LabelTenant), Network: look(LabelNetwork), Group: look(LabelGroup)}
}

// WithDefaults fills in what is empty.
func WithDefaults(r state.NetworkRef) state.NetworkRef {
	return state.NetworkRef{Tenant: cmp.Or(r.Tenant, DefaultTenant), Network: cmp.Or(r.Network, DefaultNetwork), Group: r.Group}
}

// Tenant is the tenant of a pod, given those that the pod and its namespace name; "" is none.
// The namespace has precedence.
func Tenant(pod, namespace string) string { return cmp.Or(namespace, pod, DefaultTenant) }

// InNamespace is what a pod's labels name together with those of its namespace. A group
// belongs to a network: the namespace's is nothing for a pod that chooses its network.
func InNamespace(pod, namespace state.NetworkRef) state.NetworkRef {
	out := state.NetworkRef{Tenant: cmp.Or(namespace.Tenant, pod.Tenant), Network: cmp.Or(pod.Network, namespace.Network), Group: pod.Group}
	if out.Group == "" && out.Network == namespace.Network {
		out.Group = namespace.Group
	}
	return out
}
