package tags

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
)

func TestPool(t *testing.T) {
	p := NewPool(contivmodel.TagRange{Low: 4092, High: 4095}, NameServerVLAN)
	for _, want := range []int{4092, 4094, 4095} {
		got, ok := p.Next()
		if !ok || got != want || !p.Available(got) || !p.Take(got) || p.Available(got) {
			t.Fatalf("Next = %d, %v, want %d", got, ok, want)
		}
	}
	if got, ok := p.Next(); ok {
		t.Fatalf("Next of an empty pool = %d", got)
	}
	if p.Available(NameServerVLAN) || p.Available(0) || p.Available(5000) {
		t.Fatal("tags outside the pool are available")
	}
	p.SetRange(contivmodel.TagRange{Low: 1, High: 4094})
	if got, ok := p.Next(); !ok || got != 1 {
		t.Fatalf("Next after the range grew = %d, %v", got, ok)
	}
	if !p.Free(4094) || p.Free(4094) {
		t.Fatal("Free does not tell whether the tag was taken")
	}
	if got, ok := NewPool(contivmodel.TagRange{}, 0).Next(); ok {
		t.Fatalf("Next without a range = %d", got)
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		tags []int
		want string
	}{{nil, ""}, {[]int{1}, "1"}, {[]int{1, 2}, "1-2"}, {[]int{1, 10, 11, 12, 300}, "1, 10-12, 300"}} {
		if got := Text(tc.tags); got != tc.want {
			t.Errorf("Text(%v) = %q, want %q", tc.tags, got, tc.want)
		}
	}
}

// TestLowestFirst checks that the lowest free tag of the range is handed out, and never one
// that is in use.
func TestLowestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(1, 70).Draw(t, "low")
		p := NewPool(contivmodel.TagRange{Low: low, High: low + rapid.IntRange(0, 90).Draw(t, "span")}, low+3)
		out := map[int]bool{}
		for range 120 {
			if tag := rapid.IntRange(low, low+90).Draw(t, "tag"); rapid.Bool().Draw(t, "free") {
				if p.Free(tag) != out[tag] {
					t.Fatalf("Free(%d) != %v", tag, out[tag])
				}
				delete(out, tag)
				continue
			}
			want := low
			for out[want] || want == low+3 {
				want++
			}
			got, ok := p.Next()
			if ok != p.Range().Contains(want) || ok && (got != want || !p.Take(got)) {
				t.Fatalf("Next = %d, %v, want %d", got, ok, want)
			}
			if ok {
				out[got] = true
			}
		}
	})
}
