package ofnet

import (
	"fmt"
	"net/netip"
	"testing"
)

// BenchmarkEndpointProgram makes the flows of endpoints on other hosts, of which there are
// thousands, and of local ones.
func BenchmarkEndpointProgram(b *testing.B) {
	for name, port := range map[string]uint32{"remote": 0, "local": 7} {
		b.Run(name, func(b *testing.B) {
			p := fullPipeline(b, VXLANRouting)
			for i := range b.N {
				e := remote1
				e.ID, e.IPv4, e.Port = fmt.Sprint(i), netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), port
				if len(p.Program(e).Flows) == 0 {
					b.Fatal("no flows")
				}
			}
		})
	}
}
