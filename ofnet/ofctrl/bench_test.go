package ofctrl_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// endpointFlows makes n flows like those of a routed remote endpoint.
func endpointFlows(n int) []of.Message {
	mods := make([]of.Message, n)
	for i := range mods {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		mods[i] = of.AddFlow(of.Flow{
			Table: 7, Priority: 100, Cookie: uint64(i),
			Match: of.NewMatch().Reg(2, 7).IP().IPv4Dst(netip.PrefixFrom(a, 32)),
			Instructions: of.NewInstructions().Apply(of.NewActions().DecTTL().
				SetEthSrc(of.MAC{0, 0, 0x11, 0x11, 0x11, 0x11}).SetEthDst(of.MAC{2, 2, 10, byte(i >> 16), byte(i >> 8), byte(i)}).
				SetTunID(uint64(i)).SetField(of.FieldTunDst.IsAddr(a)).SetReg(5, 1)).Goto(9),
		})
	}
	return mods
}

func benchmarkProgram(b *testing.B, n int, send func(*ofctrl.Conn, []of.Message) error) {
	sw := ovstest.Start(b)
	sw.AddBridge("br0")
	c, err := ofctrl.Dial(b.Context(), ofctrl.Config{Target: sw.Target("br0")})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	mods := endpointFlows(n)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := c.Send(b.Context(), []of.Message{of.DeleteFlows(of.TableAll, 0, 0)}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := send(c, mods); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "flows/s")
}

// BenchmarkProgram measures how long an empty switch takes to get its flows.
func BenchmarkProgram(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{10_000, 40_000} {
		b.Run(fmt.Sprintf("bundle/%d", n), func(b *testing.B) {
			benchmarkProgram(b, n, func(c *ofctrl.Conn, mods []of.Message) error { return c.Bundle(ctx, mods) })
		})
		b.Run(fmt.Sprintf("bundles-of-1000/%d", n), func(b *testing.B) {
			benchmarkProgram(b, n, func(c *ofctrl.Conn, mods []of.Message) error {
				for at := 0; at < len(mods); at += 1000 {
					if err := c.Bundle(ctx, mods[at:min(at+1000, len(mods))]); err != nil {
						return err
					}
				}
				return nil
			})
		})
		b.Run(fmt.Sprintf("send/%d", n), func(b *testing.B) {
			benchmarkProgram(b, n, func(c *ofctrl.Conn, mods []of.Message) error { return c.Send(ctx, mods) })
		})
	}
}

// BenchmarkDump measures reading 40,000 flows back.
func BenchmarkDump(b *testing.B) {
	sw := ovstest.Start(b)
	sw.AddBridge("br0")
	c, err := ofctrl.Dial(b.Context(), ofctrl.Config{Target: sw.Target("br0")})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const n = 40_000
	if err := c.Bundle(b.Context(), endpointFlows(n)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		err := c.DumpFlows(b.Context(), 0, 0, func(of.FlowStats) error { seen++; return nil })
		if err != nil || seen != n {
			b.Fatalf("%d flows, %v", seen, err)
		}
	}
}
