package contivmodel

import "strings"

// Global is the cluster-wide settings; there is one.
type Global struct {
	Key              string `json:"key"`
	ArpMode          string `json:"arpMode,omitempty"`          // proxy | flood
	FwdMode          string `json:"fwdMode,omitempty"`          // bridge | routing
	Name             string `json:"name,omitempty"`             // always "global"
	NetworkInfraType string `json:"networkInfraType,omitempty"` // aci | aci-opflex (as default) | default
	PvtSubnet        string `json:"pvtSubnet,omitempty"`        // IPv4/16
	Vlans            string `json:"vlans,omitempty"`            // LOW-HIGH
	Vxlans           string `json:"vxlans,omitempty"`           // LOW-HIGH
}

// GlobalOper is the tags in use over all networks.
type GlobalOper struct {
	ClusterMode     string `json:"clusterMode,omitempty"`
	DefaultNetwork  string `json:"defaultNetwork,omitempty"`
	FreeVXLANsStart int    `json:"freeVXLANsStart,omitempty"` // lowest VNI of the range − 1
	NumNetworks     int    `json:"numNetworks,omitempty"`     // tags in use in both pools
	VlansInUse      string `json:"vlansInUse,omitempty"`      // "1, 10-11"
	VxlansInUse     string `json:"vxlansInUse,omitempty"`
}

// Values the global settings are created with.
const (
	GlobalName       = "global"
	DefaultArpMode   = "proxy"
	DefaultPvtSubnet = "172.19.0.0/16"
	DefaultVLANs     = "1-4094"
	DefaultVXLANs    = "1-10000"
	InfraACI         = "aci"
)

// GlobalType names the kind in links, store keys and errors.
const GlobalType = "global"

// GlobalKind describes the global settings; the key is "global".
func GlobalKind() Kind[Global, GlobalOper] {
	return Kind[Global, GlobalOper]{
		Type: GlobalType, Collection: "globals", names: []string{"name"},
		key:     func(g *Global) *string { return &g.Key },
		unlink:  func(*Global) {},
		members: globalFields(),
	}
}

func globalFields() []member[Global] {
	return []member[Global]{
		{
			Field: Field{
				Name: "arpMode", Text: "how ARP requests are answered; empty in an update = unchanged", MaxBytes: 64, Keep: true,
				Values: []string{"proxy", "flood"},
			},
			text: func(g *Global) *string { return &g.ArpMode },
		},
		{
			Field: Field{
				Name: "fwdMode", Text: "how traffic is forwarded; empty in an update = unchanged", MaxBytes: 64, Keep: true,
				Values: []string{"bridge", "routing"},
			},
			text: func(g *Global) *string { return &g.FwdMode },
		},
		{
			Field: Field{
				Name: "name", Text: "the object's name", Required: true, MaxBytes: 64, Values: []string{GlobalName}, Initial: GlobalName,
			},
			text: func(g *Global) *string { return &g.Name },
		},
		{
			Field: Field{
				Name: "networkInfraType", Text: "the fabric; aci-opflex is the same as default; empty in an update = unchanged", MaxBytes: 64, Keep: true,
				Values: []string{InfraACI, "aci-opflex", "default"},
			},
			text: func(g *Global) *string { return &g.NetworkInfraType },
		},
		{
			Field: Field{Name: "pvtSubnet", Text: "ADDRESS/16 for use inside hosts", Required: true},
			text:  func(g *Global) *string { return &g.PvtSubnet }, valid: isPrivateSubnet,
		},
		{
			Field: Field{Name: "vlans", Text: "LOW-HIGH, within 1-4095", Required: true},
			text:  func(g *Global) *string { return &g.Vlans },
			valid: func(s string) bool { _, ok := tagRangeSyntax(s, maxVLANDigits); return ok },
		},
		{
			Field: Field{Name: "vxlans", Text: "LOW-HIGH, within 1-65535, at most 16001 of them", Required: true},
			text:  func(g *Global) *string { return &g.Vxlans },
			valid: func(s string) bool { _, ok := tagRangeSyntax(s, maxVNIDigits); return ok },
		},
	}
}

// isPrivateSubnet accepts ADDRESS/16.
func isPrivateSubnet(s string) bool {
	host, ok := strings.CutSuffix(s, "/16")
	return ok && isIP4(host)
}
