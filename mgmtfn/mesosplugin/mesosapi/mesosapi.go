// Package mesosapi is what the CNI binary netcontiv and the agent say to each other:
// JSON over HTTP on a unix socket. The agent's answers to a plugin of today are what the
// runtime is to read, in the version of the CNI specification that it asks for; those to
// a plugin of the original are the original's.
package mesosapi

import "github.com/containernetworking/cni/pkg/types"

// DefaultSocket is where the agent listens.
const DefaultSocket = "/run/contiv/contiv-mesos.sock"

// DefaultNetwork is the name of the CNI configuration where none is given.
const DefaultNetwork = "netcontiv"

// Paths of the calls; all are POSTs with Content-Type application/json. The original has
// the first two.
const (
	PathAdd    = "/MesosNwIntfAdd"
	PathDelete = "/MesosNwIntfDel"
	PathCheck  = "/MesosNwIntfCheck"
	PathStatus = "/MesosNwIntfStatus"
	PathGC     = "/MesosNwIntfGC"
)

// ArgTaskName is the key of CNI_ARGS that names a container; without it its id is its
// name.
const ArgTaskName = "MESOS_TASK_NAME"

// Request is about an attachment, or for PathGC about all of them.
type Request struct {
	IfName      string            `json:"cni_ifname,omitempty"`
	Netns       string            `json:"cni_netns,omitempty"` // path of the network namespace
	ContainerID string            `json:"cni_containerid,omitempty"`
	Labels      map[string]string `json:"labels"` // of the container; never null

	// What follows is no part of the original. Version is that of the CNI
	// specification to answer in; a plugin of the original does not say it.
	Version string `json:"cni_version,omitempty"`
	Network string `json:"cni_network,omitempty"` // name of the CNI configuration
	Args    string `json:"cni_args,omitempty"`    // CNI_ARGS
	// DNS is what the CNI configuration says of resolvers, for the result.
	DNS *types.DNS `json:"dns,omitempty"`
	// Valid are the attachments that PathGC leaves.
	Valid []Attachment `json:"valid_attachments,omitempty"`
}

// Attachment names one container interface.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// OldResult is the original's success: its members are there even without content.
type OldResult struct {
	IP4 OldIP    `json:"ip4"`
	IP6 OldIP    `json:"ip6"`
	DNS struct{} `json:"dns"`
}

// OldIP is an address with its prefix length.
type OldIP struct {
	IP      string `json:"ip"`
	Gateway string `json:"gateway,omitempty"`
}

// The version and the only code of the original's errors.
const (
	OldErrorVersion = "0.2"
	OldErrorCode    = 2
)

// OldError is the original's failure.
type OldError struct {
	Version string `json:"cniVersion"`
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`
}
