package ovsd

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/ofnet"
)

// benchDriver is a driver with bridges that no switch is connected to.
func benchDriver(b *testing.B) *Driver {
	d, err := New(testConfig(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	d.status.started = true
	for encap := range d.bridges {
		d.compiler.SetBridge(encap, compiler.BridgeState{Round: 1})
	}
	return d
}

func benchEndpoint(i int) drivers.Endpoint {
	n := contract.Network
	n.ID = fmt.Sprintf("net%d.default", i%10)
	n.VNI, n.Tag = uint32(10000+i%10), uint16(1+i%10)
	return drivers.Endpoint{
		ID: fmt.Sprintf("%s-c%d", n.ID, i), Network: n, MAC: ofnet.MAC{2, 2, 10, byte(i >> 16), byte(i >> 8), byte(i)}, Group: 1,
		IPv4: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), VTEP: netip.AddrFrom4([4]byte{192, 168, 61, byte(i % 100)}),
	}
}

const benchEndpoints = 10000

func benchDeclare(d *Driver) {
	d.Apply(contract.Global)
	for i := range 10 {
		d.Apply(benchEndpoint(i).Network)
	}
	for i := range benchEndpoints {
		d.Apply(benchEndpoint(i))
	}
	d.Apply(drivers.Rule{Tenant: "default", Rule: ofnet.Rule{ID: "r", DstGroup: 1, Proto: 6, DstPort: 80, Deny: true}})
	d.Synced(drivers.SourceStore)
	d.pass()
}

// BenchmarkDeclareAll measures a start with 10,000 endpoints on 100 hosts.
func BenchmarkDeclareAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		benchDeclare(benchDriver(b))
	}
}

// BenchmarkChangeOne measures one change among 10,000 endpoints.
func BenchmarkChangeOne(b *testing.B) {
	d := benchDriver(b)
	benchDeclare(d)
	e := benchEndpoint(77)
	rule := drivers.Rule{Tenant: "default", Rule: ofnet.Rule{ID: "r2", DstGroup: 1, Proto: 6, Deny: true}}
	for name, change := range map[string]func(i int){
		"endpoint": func(i int) {
			e.VTEP = netip.AddrFrom4([4]byte{192, 168, 61, byte(i % 2)})
			d.Apply(e)
		},
		"rule": func(i int) {
			rule.DstPort = uint16(i)
			d.Apply(rule)
		},
		"same": func(int) { d.Apply(e) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if change(i); d.compiler.Dirty() {
					d.pass()
				}
			}
		})
	}
}
