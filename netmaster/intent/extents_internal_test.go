package intent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestExtents adds, removes and looks for random runs, disjoint or not, and compares
// with a list that is searched from end to end.
func TestExtents(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		address := func(n int) netip.Addr {
			if n >= 64 {
				return netip.AddrFrom16([16]byte{0x20, 15: byte(n)})
			}
			return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
		}
		run := func() (first, last netip.Addr) {
			family := 64 * random.IntN(2)
			a := random.IntN(64)
			return address(family + a), address(family + min(63, a+random.IntN(6)))
		}
		var e extents
		var list []extent
		for step := range 300 {
			switch first, last := run(); random.IntN(3) {
			case 0:
				x := extent{first: first, last: last, network: fmt.Sprint(step)}
				e.add(x.first, x.last, x.network)
				list = append(list, x)
			case 1:
				if len(list) > 0 {
					i := random.IntN(len(list))
					e.remove(list[i].first, list[i].network)
					list = append(list[:i], list[i+1:]...)
				}
			default:
				want := map[string]bool{}
				for _, x := range list {
					if !x.last.Less(first) && !last.Less(x.first) {
						want[x.network] = true
					}
				}
				got, found := e.overlap(first, last)
				if found != (len(want) > 0) || found && !want[got] {
					t.Fatalf("seed %d, step %d: %s-%s overlaps %q, %v, want one of %v", seed, step, first, last, got, found, want)
				}
			}
		}
		if len(e) != len(list) {
			t.Fatalf("seed %d: %d extents, want %d", seed, len(e), len(list))
		}
	}
}
