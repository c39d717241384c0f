package delta_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/utils/delta"
)

func collect(m *delta.Map[string, int]) map[string]delta.Change[string, int] {
	out := map[string]delta.Change[string, int]{}
	for c := range m.Pending() {
		out[c.Key] = c
	}
	return out
}

func TestPending(t *testing.T) {
	type change = delta.Change[string, int]
	tests := []struct {
		name            string
		desired, actual map[string]int
		want            map[string]change
	}{
		{"empty", nil, nil, map[string]change{}},
		{"add", map[string]int{"a": 1}, nil, map[string]change{"a": {Op: delta.Add, Key: "a", Want: 1}}},
		{"remove", nil, map[string]int{"a": 1}, map[string]change{"a": {Op: delta.Remove, Key: "a", Have: 1}}},
		{"update", map[string]int{"a": 2}, map[string]int{"a": 1}, map[string]change{"a": {Op: delta.Update, Key: "a", Want: 2, Have: 1}}},
		{"settled", map[string]int{"a": 1, "b": 0}, map[string]int{"a": 1, "b": 0}, map[string]change{}},
		{"zero value is a value", map[string]int{"a": 0}, nil, map[string]change{"a": {Op: delta.Add, Key: "a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := delta.NewComparable[string, int]()
			m.ReplaceDesired(tt.desired)
			m.ReplaceActual(tt.actual)
			if diff := cmp.Diff(tt.want, collect(m)); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
			if got := m.LenPending(); got != len(tt.want) {
				t.Errorf("LenPending = %d, want %d", got, len(tt.want))
			}
			for k, w := range tt.want {
				if c, ok := m.PendingFor(k); !ok || c != w {
					t.Errorf("PendingFor(%q) = %v, %t, want %v", k, c, ok, w)
				}
			}
			for c := range m.Pending() {
				m.Applied(c)
			}
			if m.LenPending() != 0 || m.LenActual() != len(tt.desired) {
				t.Errorf("after applying: %d pending, %d there; want 0, %d", m.LenPending(), m.LenActual(), len(tt.desired))
			}
		})
	}
}

// TestEqualityIsTheCallers: the actual side may carry what the desired one cannot know.
func TestEqualityIsTheCallers(t *testing.T) {
	type port struct{ name, uuid string }
	m := delta.New[string](func(a, b port) bool { return a.name == b.name })
	m.SetActual("p", port{"p", "u-1"})
	if m.SetDesired("p", port{name: "p"}) {
		t.Error("SetDesired reports a difference where the caller's equality sees none")
	}
	if have, _ := m.Actual("p"); have.uuid != "u-1" {
		t.Errorf("actual side lost its uuid: %+v", have)
	}
}

// TestAppliedKeepsNewerWish: what was wanted while a change was under way stays pending.
func TestAppliedKeepsNewerWish(t *testing.T) {
	m := delta.NewComparable[string, int]()
	m.SetDesired("a", 1)
	c, _ := m.PendingFor("a")
	m.SetDesired("a", 2)
	m.Applied(c)
	got, ok := m.PendingFor("a")
	if want := (delta.Change[string, int]{Op: delta.Update, Key: "a", Want: 2, Have: 1}); !ok || got != want {
		t.Errorf("PendingFor = %v, %t, want %v", got, ok, want)
	}
}

// TestAgainstReferenceModel drives a Map at random and compares it with two plain maps.
func TestAgainstReferenceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := delta.NewComparable[string, int]()
		want, have := map[string]int{}, map[string]int{}
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "n")) })
		val := rapid.IntRange(0, 2)
		side := rapid.MapOf(key, val)
		t.Repeat(map[string]func(*rapid.T){
			"want": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), val.Draw(t, "value")
				want[k] = v
				_, pending := have[k]
				pending = !pending || have[k] != v
				if got := m.SetDesired(k, v); got != pending {
					t.Fatalf("SetDesired(%q, %d) = %t", k, v, got)
				}
			},
			"unwant": func(t *rapid.T) {
				k := key.Draw(t, "key")
				delete(want, k)
				_, there := have[k]
				if got := m.DeleteDesired(k); got != there {
					t.Fatalf("DeleteDesired(%q) = %t", k, got)
				}
			},
			"there": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), val.Draw(t, "value")
				have[k] = v
				m.SetActual(k, v)
			},
			"gone": func(t *rapid.T) {
				k := key.Draw(t, "key")
				delete(have, k)
				m.DeleteActual(k)
			},
			"replace desired": func(t *rapid.T) {
				want = side.Draw(t, "desired")
				m.ReplaceDesired(maps.Clone(want))
			},
			"replace actual": func(t *rapid.T) {
				have = side.Draw(t, "actual")
				m.ReplaceActual(maps.Clone(have))
			},
			"forget": func(*rapid.T) {
				have = map[string]int{}
				m.ForgetActual()
			},
			"apply some": func(t *rapid.T) {
				for c := range m.Pending() {
					if rapid.Bool().Draw(t, "works") {
						m.Applied(c)
						if c.Op == delta.Remove {
							delete(have, c.Key)
						} else {
							have[c.Key] = c.Want
						}
					}
				}
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(reference(want, have), collect(m)); diff != "" {
					t.Fatalf("pending (-reference +map):\n%s", diff)
				}
				if diff := cmp.Diff(want, maps.Collect(m.AllDesired())); diff != "" {
					t.Fatalf("desired:\n%s", diff)
				}
				if diff := cmp.Diff(have, maps.Collect(m.AllActual())); diff != "" {
					t.Fatalf("actual:\n%s", diff)
				}
				if m.Len() != len(want) || m.LenActual() != len(have) {
					t.Fatalf("Len %d, LenActual %d, want %d, %d", m.Len(), m.LenActual(), len(want), len(have))
				}
				for k, v := range want {
					if got, ok := m.Desired(k); !ok || got != v {
						t.Fatalf("Desired(%q) = %d, %t, want %d", k, got, ok, v)
					}
				}
			},
		})
	})
}

func reference(want, have map[string]int) map[string]delta.Change[string, int] {
	out := map[string]delta.Change[string, int]{}
	for k, w := range want {
		if h, ok := have[k]; !ok {
			out[k] = delta.Change[string, int]{Op: delta.Add, Key: k, Want: w}
		} else if h != w {
			out[k] = delta.Change[string, int]{Op: delta.Update, Key: k, Want: w, Have: h}
		}
	}
	for k, h := range have {
		if _, ok := want[k]; !ok {
			out[k] = delta.Change[string, int]{Op: delta.Remove, Key: k, Have: h}
		}
	}
	return out
}

// BenchmarkReplace measures a restart: 40,000 entries read back, all as desired.
func BenchmarkReplace(b *testing.B) {
	want := map[string]int{}
	for i := range 40_000 {
		want[fmt.Sprintf("flow-%d", i)] = i
	}
	b.ReportAllocs()
	for b.Loop() {
		m := delta.NewComparable[string, int]()
		m.ReplaceActual(want)
		m.ReplaceDesired(want)
		if m.LenPending() != 0 {
			b.Fatal("a difference where there is none")
		}
	}
}
