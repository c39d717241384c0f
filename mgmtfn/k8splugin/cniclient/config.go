package cniclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
)

// netConf is the network configuration on standard input. Unknown members are ignored.
type netConf struct {
	types.PluginConf
	Socket  string `json:"socket,omitempty"`  // of the agent
	LogFile string `json:"logFile,omitempty"` // default /var/log/contivk8s.log
	MTU     int    `json:"mtu,omitempty"`
	// Contiv says where containers of this configuration belong.
	Contiv struct {
		Tenant  string `json:"tenant,omitempty"`
		Network string `json:"network,omitempty"`
		Group   string `json:"group,omitempty"`
	} `json:"contiv,omitempty"`
}

func (p *Plugin) parseConf(stdin []byte) (*netConf, error) {
	conf := &netConf{}
	if err := json.Unmarshal(stdin, conf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "Contiv:cannot read the network configuration", err.Error())
	}
	p.version = conf.CNIVersion
	if conf.Socket == "" {
		conf.Socket = cniapi.DefaultSocket
	}
	if conf.LogFile == "" {
		conf.LogFile = "/var/log/contivk8s.log"
	}
	if conf.MTU < 0 || conf.MTU > 65535 {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, "Contiv:invalid network configuration", fmt.Sprintf("mtu %d: expected 0 to 65535", conf.MTU))
	}
	if err := cniversion.ParsePrevResult(&conf.PluginConf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "Contiv:cannot read prevResult", err.Error())
	}
	return conf, nil
}

// parseArgs splits CNI_ARGS ("K=V;K=V"); a part without "=" is skipped, keys may come
// in any order.
func parseArgs(args string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(args, ";") {
		if k, v, ok := strings.Cut(part, "="); ok {
			out[strings.TrimSpace(k)] = v
		}
	}
	return out
}

// request puts together what the agent is told. CNI_ARGS, which may differ from call
// to call, beat the configuration.
func (c *netConf) request(containerID, netns, ifName, cniArgs string) cniapi.PodRequest {
	args := parseArgs(cniArgs)
	return cniapi.PodRequest{
		ContainerID: containerID, Netns: netns, IfName: ifName, MTU: c.MTU,
		Name: args["K8S_POD_NAME"], Namespace: args["K8S_POD_NAMESPACE"], PodUID: args["K8S_POD_UID"],
		InfraContainerID: first(args["K8S_POD_INFRA_CONTAINER_ID"], containerID),
		Tenant:           first(args["CONTIV_TENANT"], c.Contiv.Tenant),
		Network:          first(args["CONTIV_NETWORK"], c.Contiv.Network),
		Group:            first(args["CONTIV_GROUP"], c.Contiv.Group),
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
