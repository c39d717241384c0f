package flowlog

import (
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state/flowapi"
)

// TestPods: a pod is told by namespace and name, not by the name that its container has; the
// sender of a forged address is the pod that it really is.
func TestPods(t *testing.T) {
	h := newHost(t, 0)
	h.reads(conn(1, func(c *drivers.Connection) { c.Src = at("10.1.1.3:1") }))
	if r := h.one(flowapi.Filter{}); r.Src.Name != "shop/far" || r.Dst.Name != "web" {
		t.Errorf("from %s to %s, want shop/far and web", r.Src.Name, r.Dst.Name)
	}
	h.deny(drivers.Denied{DeniedPacket: ofnet.DeniedPacket{By: ofnet.DeniedBySource, EthType: 0x0800, Proto: 6, Src: at("10.1.1.3:2"), Dst: at("10.1.1.1:80")}, Tenant: "blue", Endpoint: "net.blue-app"})
	all, _ := h.events(flowapi.Filter{Verdict: "denied"})
	if len(all) != 1 || all[0].Src.Name != "app" {
		t.Errorf("%+v", all)
	}
}
