package compiler

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The flood group of a network depends on where its endpoints are now, not on history, and
// every change is reported.
func TestFloodsFollowEndpoints(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f, where := newLocations(), map[string]location{}
		seen := map[string]string{} // each network's flood group when it was last reported
		text := func(network string, of func(string) ([]uint32, []netip.Addr)) string {
			ports, vteps := of(network)
			return fmt.Sprint(ports, vteps)
		}
		reference := func(network string) (ports []uint32, vteps []netip.Addr) {
			for _, p := range where {
				if p.network == network && p.port != 0 {
					ports = append(ports, p.port)
				} else if p.network == network {
					vteps = append(vteps, p.vtep)
				}
			}
			slices.Sort(ports)
			slices.SortFunc(vteps, netip.Addr.Compare)
			return slices.Compact(ports), slices.Compact(vteps)
		}
		for range 200 {
			id := fmt.Sprint("e", rng.IntN(12))
			p := location{network: fmt.Sprint("n", rng.IntN(3))}
			switch rng.IntN(3) {
			case 0:
				p = location{}
			case 1:
				p.port = uint32(rng.IntN(4) + 1)
			default:
				p.vtep = netip.AddrFrom4([4]byte{10, 0, 0, byte(rng.IntN(4))})
			}
			if delete(where, id); p != (location{}) {
				where[id] = p
			}
			for _, n := range f.put(id, p) {
				seen[n] = text(n, f.of)
			}
			for i := range 3 {
				n := fmt.Sprint("n", i)
				if diff := cmp.Diff(text(n, reference), text(n, f.of)); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", n, diff)
				}
				if old, ok := seen[n]; ok && old != text(n, reference) {
					t.Fatalf("%s is %s, last announced as %s", n, text(n, reference), old)
				}
			}
		}
	}
}
