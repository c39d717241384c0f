package ofctrl_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
)

// udpFrame is a UDP packet from 10.1.1.1 port 1000 to 10.1.1.2 port 2000.
const udpFrame = "020000000002" + "020000000001" + "0800" +
	"4500001e0000000040116" + "4cb" + "0a010101" + "0a010102" + "03e807d0000a0000" + "6869"

func TestFlushConnections(t *testing.T) {
	sw, c := connect(t, ofctrl.Config{})
	frame, err := hex.DecodeString(udpFrame)
	if err != nil {
		t.Fatal(err)
	}
	tracked := func() bool { return strings.Contains(sw.Appctl("dpctl/dump-conntrack"), "src=10.1.1.1") }
	orig := of.CTTuple{Src: netip.MustParseAddr("10.1.1.1"), DstPort: 2000}
	other := of.CTTuple{Src: netip.MustParseAddr("10.1.1.9")}
	for name, tt := range map[string]struct {
		flush of.Message
		left  bool
	}{
		"zone":           {&of.FlushCTZone{Zone: 5}, false},
		"another zone":   {&of.FlushCTZone{Zone: 6}, true},
		"tuple":          {&of.FlushCT{Proto: of.ProtoUDP, Zone: 5, Orig: orig}, false},
		"any zone":       {&of.FlushCT{Proto: of.ProtoUDP, AnyZone: true, Orig: orig}, false},
		"other protocol": {&of.FlushCT{Proto: of.ProtoTCP, Zone: 5, Orig: orig}, true},
		"other address":  {&of.FlushCT{Zone: 5, Orig: other}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.PacketOut(&of.PacketOut{
				InPort: of.PortController, Data: frame,
				Actions: of.NewActions().CT(of.CT{Commit: true, Zone: 5}),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !tracked() {
				t.Fatal("the connection is not tracked")
			}
			if err := c.Send(t.Context(), []of.Message{tt.flush}); err != nil {
				t.Fatal(err)
			}
			if got := tracked(); got != tt.left {
				t.Errorf("tracked after the flush: %v, want %v", got, tt.left)
			}
		})
	}
}
