package sparse

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAgainstMap holds the set to a plain map over random operations, with bounds
// that end inside leaves and at the edges of levels.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]uint64{1, 2, 63, 64, 65, 300, 4096, 4097, 1 << 24}).Draw(t, "size")
		s, model := New(size), map[uint64]bool{}
		near := rapid.Uint64Range(0, min(size+1, 200))
		far := rapid.Uint64Range(0, size+1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.OneOf(near, far).Draw(t, "i")
			if rapid.IntRange(0, 3).Draw(t, "op") > 0 {
				if want := i < size && !model[i]; s.Add(i) != want {
					t.Fatalf("Add(%d) != %v", i, want)
				}
				if i < size {
					model[i] = true
				}
			} else {
				if s.Remove(i) != model[i] {
					t.Fatalf("Remove(%d) != %v", i, model[i])
				}
				delete(model, i)
			}
			if s.Len() != len(model) || s.Has(i) != model[i] {
				t.Fatalf("after %d: len %d, want %d", i, s.Len(), len(model))
			}
			from := rapid.OneOf(near, far).Draw(t, "from")
			free := from
			for model[free] {
				free++
			}
			if got, ok := s.NextFree(from); ok != (free < size) || ok && got != free {
				t.Fatalf("NextFree(%d) = %d, %v, want %d", from, got, ok, free)
			}
			got, ok := s.Next(from)
			var want uint64
			found := false
			for m := range model {
				if m >= from && (!found || m < want) {
					want, found = m, true
				}
			}
			if ok != found || ok && got != want {
				t.Fatalf("Next(%d) = %d, %v, want %d, %v", from, got, ok, want, found)
			}
		}
	})
}

func TestFull(t *testing.T) {
	s := New(5000)
	for i := range uint64(5000) {
		if got, ok := s.NextFree(0); !ok || got != i {
			t.Fatalf("NextFree = %d, %v, want %d", got, ok, i)
		}
		s.Add(i)
	}
	if got, ok := s.NextFree(0); ok {
		t.Fatalf("NextFree of a full set = %d", got)
	}
	s.Remove(17)
	if got, ok := s.NextFree(0); !ok || got != 17 {
		t.Fatalf("NextFree = %d, %v, want 17", got, ok)
	}
}

func BenchmarkNextFreeNearlyFull(b *testing.B) {
	s := New(1 << 20)
	for i := range uint64(1 << 20) {
		s.Add(i)
	}
	s.Remove(1<<20 - 2)
	for b.Loop() {
		s.NextFree(0)
	}
}
