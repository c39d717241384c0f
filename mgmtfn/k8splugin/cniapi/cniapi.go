// Package cniapi is what the CNI binary contivk8s and the agent say to each other: JSON
// over HTTP on a unix socket. The three-letter core is the original's; every other
// member is an addition that old peers ignore.
package cniapi

// DefaultSocket is where the agent listens.
const DefaultSocket = "/run/contiv/contiv-cni.sock"

// Paths of the calls; all are POSTs with Content-Type application/json.
const (
	PathAddPod   = "/ContivCNI.AddPod"
	PathDelPod   = "/ContivCNI.DelPod"
	PathCheckPod = "/ContivCNI.CheckPod"
	PathStatus   = "/ContivCNI.Status"
	PathGC       = "/ContivCNI.GC"
)

// PodRequest describes an attachment.
type PodRequest struct {
	Name             string `json:"K8S_POD_NAME,omitempty"`
	Namespace        string `json:"K8S_POD_NAMESPACE,omitempty"`
	InfraContainerID string `json:"K8S_POD_INFRA_CONTAINER_ID,omitempty"`
	Netns            string `json:"CNI_NETNS,omitempty"` // path of the network namespace
	IfName           string `json:"CNI_IFNAME,omitempty"`

	ContainerID string `json:"CNI_CONTAINERID,omitempty"`
	PodUID      string `json:"K8S_POD_UID,omitempty"`
	Config      string `json:"CNI_NETWORK,omitempty"` // name of the network configuration
	// Where to attach, when the network configuration or CNI_ARGS say so; otherwise
	// the pod's labels do.
	Tenant  string `json:"CONTIV_TENANT,omitempty"`
	Network string `json:"CONTIV_NETWORK,omitempty"`
	Group   string `json:"CONTIV_GROUP,omitempty"`
	MTU     int    `json:"CONTIV_MTU,omitempty"` // 0: what the network carries
	// RuntimeConfig is what the runtime wants by the capabilities of the configuration.
	RuntimeConfig *RuntimeConfig `json:"RUNTIME_CONFIG,omitempty"`
}

// RuntimeConfig holds the well-known capabilities (conventions of the CNI specification)
// that Contiv has.
type RuntimeConfig struct {
	IPs []string `json:"ips,omitempty"` // addresses, at most one a family; a prefix length is ignored
	MAC string   `json:"mac,omitempty"`
}

// Route is a route of the container; an empty Gateway means on-link.
type Route struct {
	Dst     string `json:"dst"`
	Gateway string `json:"gw,omitempty"`
}

// PodReply answers every call about a pod. Result 0 is success.
type PodReply struct {
	Result      uint   `json:"result,omitempty"`
	EndpointID  string `json:"endpointid,omitempty"`
	IPAddress   string `json:"ipaddress,omitempty"`   // CIDR
	IPv6Address string `json:"ipv6address,omitempty"` // CIDR
	ErrMsg      string `json:"errmsg,omitempty"`
	ErrInfo     string `json:"errinfo,omitempty"` // "Err: …"

	ErrCode     uint    `json:"errcode,omitempty"`
	MAC         string  `json:"mac,omitempty"`
	MTU         int     `json:"mtu,omitempty"`
	HostIntf    string  `json:"hostIntf,omitempty"`
	Gateway     string  `json:"gateway,omitempty"`
	IPv6Gateway string  `json:"ipv6gateway,omitempty"`
	Routes      []Route `json:"routes,omitempty"`
}

// Attachment names one container interface.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// GCRequest lists the attachments of a network configuration that are still in use.
type GCRequest struct {
	Config           string       `json:"network,omitempty"` // its name; empty: all are meant
	ValidAttachments []Attachment `json:"validAttachments"`
}
