package agent

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/state"
)

func TestNetworkRecords(t *testing.T) {
	good := state.Network{
		ID: "n1.blue", Tenant: "blue", NetworkName: "n1", PktTagType: state.EncapVXLAN, PktTag: 7, ExtPktTag: 10007,
		SubnetIP: "10.1.1.0", SubnetLen: 24, Gateway: "10.1.1.254",
	}
	if n, err := asNetwork(good); err != nil || n.Tag != 7 || n.VNI != 10007 {
		t.Errorf("%+v, %v", n, err)
	}
	for text, spoil := range map[string]func(*state.Network){
		// As a smaller number either would be that of another network.
		"VLAN 65543: expected 0 to 4094":  func(n *state.Network) { n.PktTag = 1<<16 + 7 },
		"VLAN -1: expected":               func(n *state.Network) { n.PktTag = -1 },
		"VNI 16777216: expected":          func(n *state.Network) { n.ExtPktTag = 1 << 24 },
		"network n1.blue: subnet: ":       func(n *state.Network) { n.SubnetLen = 99 },
		"network n1.blue: gateway: ":      func(n *state.Network) { n.Gateway = "ten" },
		"network n1.blue: IPv6 gateway: ": func(n *state.Network) { n.IPv6Gateway = "10" },
		"network n1.blue: IPv6 subnet: ":  func(n *state.Network) { n.IPv6Subnet = "x" },
	} {
		n := good
		spoil(&n)
		if got, err := asNetwork(n); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v, %v, expected an error with %q", got, err, text)
		}
	}
}
