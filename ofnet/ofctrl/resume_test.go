package ofctrl_test

import (
	"slices"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
)

// A paused packet continues where it stopped, with its registers and tunnel fields, also
// through the goto that follows the pause.
func TestResume(t *testing.T) {
	packets := make(chan *of.PacketIn, 10)
	_, c := connect(t, ofctrl.Config{PacketIn: func(p *of.PacketIn) { packets <- p }, Userdata: true})
	flows := []of.Flow{
		{Table: 4, Priority: 7, Instructions: of.NewInstructions().
			Apply(of.NewActions().SetReg(3, 9).SetTunID(77).Controller(of.Controller{Pause: true, Userdata: []byte("ask")})).Goto(5)},
		{Table: 5, Priority: 7, Match: of.NewMatch().TunID(77).Reg(3, 9), Instructions: of.NewInstructions().
			Apply(of.NewActions().Controller(of.Controller{Userdata: []byte("later")}))},
	}
	if err := c.Bundle(t.Context(), []of.Message{of.AddFlow(flows[0]), of.AddFlow(flows[1])}); err != nil {
		t.Fatal(err)
	}
	frame := slices.Concat(make([]byte, 12), []byte{0x88, 0xcc}, make([]byte, 50))
	if err := c.PacketOut(&of.PacketOut{InPort: of.PortController, Actions: of.NewActions().Resubmit(4), Data: frame}); err != nil {
		t.Fatal(err)
	}
	paused := <-packets
	if string(paused.Userdata) != "ask" || paused.Paused == nil {
		t.Fatalf("packet in %+v, want a paused one", paused)
	}
	if err := c.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(packets) != 0 {
		t.Fatal("the packet went on by itself")
	}
	if err := c.Resume(paused); err != nil {
		t.Fatal(err)
	}
	if later := <-packets; string(later.Userdata) != "later" || later.Paused != nil || !slices.Equal(later.Data, frame) {
		t.Errorf("packet in %+v, want the same packet from table 5", later)
	}
}
