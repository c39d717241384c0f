package cniclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin/cniapi"
)

// netConf is the network configuration on standard input. Unknown members are ignored.
type netConf struct {
	types.PluginConf
	Socket  string `json:"socket,omitempty"`  // of the agent
	LogFile string `json:"logFile,omitempty"` // default /var/log/contivk8s.log
	MTU     int    `json:"mtu,omitempty"`
	// RuntimeConfig is there if the configuration declares its capabilities.
	RuntimeConfig *cniapi.RuntimeConfig `json:"runtimeConfig,omitempty"`
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

// request puts together what the agent is told. CNI_ARGS, which may differ from call
// to call, beat the configuration.
func (c *netConf) request(containerID, netns, ifName, cniArgs string) cniapi.PodRequest {
	args := cni.ParseArgs(cniArgs)
	return cniapi.PodRequest{
		ContainerID: containerID, Netns: netns, IfName: ifName, MTU: c.MTU, Config: c.PluginConf.Name, RuntimeConfig: c.RuntimeConfig,
		Name: args["K8S_POD_NAME"], Namespace: args["K8S_POD_NAMESPACE"], PodUID: args["K8S_POD_UID"],
		InfraContainerID: cmp.Or(args["K8S_POD_INFRA_CONTAINER_ID"], containerID),
		Tenant:           cmp.Or(args["CONTIV_TENANT"], c.Contiv.Tenant),
		Network:          cmp.Or(args["CONTIV_NETWORK"], c.Contiv.Network),
		Group:            cmp.Or(args["CONTIV_GROUP"], c.Contiv.Group),
	}
}

// log opens the log of a call. Where it cannot be written there is none: standard error
// is the runtime's.
func (c *netConf) log(args *skel.CmdArgs) *cni.Log {
	return cni.OpenLog(c.LogFile, io.Discard, "NETNS="+cmp.Or(args.Netns, "EMPTY"))
}
