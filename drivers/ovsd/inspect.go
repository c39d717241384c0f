package ovsd

import (
	"net/netip"

	"github.com/contiv/netplugin/ofnet"
)

// The debug state that Inspect returns keeps the member names of the original, which tools
// read. What we do not have (masters, timestamps) is left empty.

type switchState struct {
	LocalIp      string // name of the original
	MyPort       int
	MyAddr       string
	IsConnected  bool
	DpName       string
	MTU          int `json:",omitempty"` // of containers' interfaces
	Protopath    *string
	MasterDb     map[string]any
	VtepTable    map[string]int
	EndpointDb   map[string]endpointState
	VrfNameIdMap map[string]uint16 // name of the original
	VrfDb        map[string]vrfState
	FwdMode      string
	ArpMode      string
	Stats        map[string]uint64
	ErrStats     map[string]uint64
	Datapath     datapathState
	Switch       ofnet.SwitchStatus
}

type datapathState struct {
	Tables []string // names of the flow tables by number
	Error  string   `json:",omitempty"`

	PolicyAgent policyState
	SvcProxy    proxyState
	MyRouterMac []byte `json:",omitempty"` // of VXLAN routing
}

type endpointState struct {
	EndpointID    string
	EndpointType  int // 2: internal
	EndpointGroup int
	IpAddr        string // name of the original
	IpMask        string // name of the original
	Ipv6Addr      string
	Ipv6Mask      string
	Vrf           string
	MacAddrStr    string
	Vlan          int
	Vni           int
	OriginatorIp  string // name of the original
	PortNo        uint32 `json:",omitempty"`
}

type vrfState struct {
	VrfName     string
	VrfId       uint16 // name of the original
	NumNetworks int
}

const (
	rpcPortVXLAN = 9002
	rpcPortVLAN  = 9003
)

// Inspect returns a debug state for each bridge, to be encoded as JSON, by "vlan" and
// "vxlan".
func (d *Driver) Inspect() map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return map[string]any{
		"vlan":  d.debugState(d.bridges[ofnet.VLAN], rpcPortVLAN),
		"vxlan": d.debugState(d.bridges[ofnet.VXLAN], rpcPortVXLAN),
	}
}

func (d *Driver) debugState(s *bridge, rpcPort int) switchState {
	status := s.sw.Status()
	p := switchState{
		LocalIp: d.cfg.VTEP.String(), MyAddr: d.cfg.VTEP.String(), MyPort: rpcPort, IsConnected: status.Connected, MTU: s.mtu(),
		MasterDb: map[string]any{}, VtepTable: map[string]int{}, EndpointDb: map[string]endpointState{},
		VrfNameIdMap: map[string]uint16{}, VrfDb: map[string]vrfState{},
		FwdMode: d.compiler.Global.FwdMode, ArpMode: d.compiler.Global.ARPMode, Stats: map[string]uint64{"FlowModSent": status.Sent}, ErrStats: map[string]uint64{},
		Switch: status,
	}
	pipeline, err := d.compiler.Pipeline(s.encap)
	if pipeline != nil {
		p.DpName, p.Datapath.Tables = pipeline.Mode().String(), pipeline.Tables()
	}
	p.Datapath.PolicyAgent, p.Datapath.SvcProxy = d.policyState(), d.proxyState()
	if p.DpName == "vrouter" {
		p.Datapath.MyRouterMac = ofnet.RouterMAC[:]
	}
	if err != nil {
		p.Datapath.Error = err.Error()
	}
	for _, n := range d.compiler.Networks {
		if n.Encap != s.encap {
			continue
		}
		v := p.VrfDb[n.Tenant]
		v.VrfName, v.VrfId = n.Tenant, d.compiler.VRFs[n.Tenant]
		v.NumNetworks++
		p.VrfDb[n.Tenant], p.VrfNameIdMap[n.Tenant] = v, v.VrfId
	}
	for id, e := range d.compiler.Endpoints {
		if e.Network.Encap != s.encap {
			continue
		}
		origin := e.VTEP
		if e.Local {
			origin = d.cfg.VTEP
		} else if s.encap == ofnet.VXLAN && e.VTEP.IsValid() {
			p.VtepTable[e.VTEP.String()] = tunnelOFPort
		}
		p.EndpointDb[text(e.IPv4)+":"+e.Network.Tenant] = endpointState{
			EndpointID: id, EndpointType: 2, EndpointGroup: int(e.Group),
			IpAddr: text(e.IPv4), IpMask: mask(e.IPv4, "255.255.255.255"),
			Ipv6Addr: text(e.IPv6), Ipv6Mask: mask(e.IPv6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
			Vrf: e.Network.Tenant, MacAddrStr: e.MAC.String(), Vlan: int(e.Network.Tag), Vni: int(e.Network.VNI),
			OriginatorIp: text(origin), PortNo: d.compiler.Ports[id].OpenFlow,
		}
	}
	if s.encap == ofnet.VXLAN {
		for _, peer := range d.compiler.Peers() {
			p.VtepTable[peer] = tunnelOFPort
		}
	}
	return p
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func mask(a netip.Addr, m string) string {
	if !a.IsValid() {
		return ""
	}
	return m
}
