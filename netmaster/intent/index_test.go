package intent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKeySet: a set is what was added and not removed, of whatever size, and it can be small
// again.
func TestKeySet(t *testing.T) {
	want, s := map[int]bool{}, keySet[int]{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		limit := []int{3, fewKeys, 10 * fewKeys}[i/500%3]
		k := random.IntN(limit)
		if add := len(want) < limit/2 || random.IntN(2) == 0; add {
			want[k], s = true, s.with(k)
		} else {
			delete(want, k)
			s = s.without(k)
		}
		if got := slices.Sorted(s.all()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) || s.len() != len(want) {
			t.Fatalf("step %d: %d keys, %v; expected %v", i, s.len(), got, slices.Sorted(maps.Keys(want)))
		}
		for range s.all() {
			break // iterating may end early
		}
	}
}

// TestTexts: equal texts become one; long ones, and those of before too many, stay as they are.
func TestTexts(t *testing.T) {
	var shared texts
	text := func(format string, args ...any) *string { s := fmt.Sprintf(format, args...); return &s }
	same := func(a, b *string) bool { return *a == *b && len(*a) > 0 && unsafeData(*a) == unsafeData(*b) }
	a, b, empty := text("tenant%d", 1), text("tenant%d", 1), ""
	if shared.share(a, b, &empty); !same(a, b) || empty != "" {
		t.Errorf("%q and %q are not one text", *a, *b)
	}
	long1, long2 := text("%0*d", maxText+1, 0), text("%0*d", maxText+1, 0)
	if shared.share(long1, long2); same(long1, long2) || len(shared.known) != 1 {
		t.Error("long texts are remembered")
	}
	for i := range 3 * maxTexts {
		shared.share(text("%d", i))
	}
	if len(shared.known) > maxTexts {
		t.Errorf("%d texts are remembered, expected %d at most", len(shared.known), maxTexts)
	}
}
