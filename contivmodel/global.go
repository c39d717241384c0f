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

// GlobalKind describes the global settings; the key is "global".
func GlobalKind() Kind[Global, GlobalOper] {
	return Kind[Global, GlobalOper]{
		Type:       "global",
		Collection: "globals",
		key:        func(g *Global) *string { return &g.Key },
		ident:      func(g *Global) string { return g.Name },
		unlink:     func(*Global) {},
		check:      checkGlobal,
	}
}

func checkGlobal(g *Global, c *checker) {
	c.limit("arpMode", g.ArpMode, 64)
	c.oneOf("arpMode", g.ArpMode, "", "proxy", "flood")
	c.limit("fwdMode", g.FwdMode, 64)
	c.oneOf("fwdMode", g.FwdMode, "", "bridge", "routing")
	c.limit("name", g.Name, 64)
	c.oneOf("name", g.Name, GlobalName)
	c.limit("networkInfraType", g.NetworkInfraType, 64)
	c.oneOf("networkInfraType", g.NetworkInfraType, "", InfraACI, "aci-opflex", "default")
	host, ok := strings.CutSuffix(g.PvtSubnet, "/16")
	_, good := ParseIP4(host)
	c.format("pvtSubnet", ok && good)
	_, ok = tagRangeSyntax(g.Vlans, maxVLANDigits)
	c.format("vlans", ok)
	_, ok = tagRangeSyntax(g.Vxlans, maxVNIDigits)
	c.format("vxlans", ok)
}
