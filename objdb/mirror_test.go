package objdb_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
)

// told is a mirror of numbers below n/, and the changes it has reported since the last
// check.
type told struct {
	objdb.Mirror[int]
	words []string
}

func newTold() *told {
	w := &told{}
	text := func(v int, there bool) string {
		if !there {
			return "-"
		}
		return fmt.Sprint(v)
	}
	w.Mirror = objdb.Mirror[int]{
		Prefix: "n/",
		Changed: func(c objdb.Change[int]) {
			w.words = append(w.words, c.ID+":"+text(c.Old, c.Was)+">"+text(c.New, c.Is))
			if c.Key != "n/"+c.ID {
				w.words = append(w.words, "key "+c.Key)
			}
		},
		Unreadable: func(key string, _ error) { w.words = append(w.words, key+"!") },
	}
	return w
}

// apply applies a batch, written as key=value or key to delete it, and returns the reported
// changes and the records, both sorted.
func (w *told) apply(snapshot bool, events ...string) (told, have string) {
	b := objdb.Batch{Snapshot: snapshot}
	for _, text := range events {
		key, value, put := strings.Cut(text, "=")
		b.Events = append(b.Events, objdb.Event{KV: objdb.KV{Key: key, Value: []byte(value)}, Deleted: !put})
	}
	w.words = nil
	w.Apply(b)
	slices.Sort(w.words)
	all := maps.Collect(w.All())
	for _, id := range slices.Sorted(maps.Keys(all)) {
		have += fmt.Sprintf("%s=%d ", id, all[id])
	}
	return strings.Join(w.words, " "), strings.TrimSpace(have)
}

func TestMirror(t *testing.T) {
	w := newTold()
	for _, step := range []struct {
		name       string
		snapshot   bool
		events     []string
		told, have string
	}{
		{"first snapshot", true, []string{"n/a=1", "n/b=2", "other/c=3"}, "a:->1 b:->2", "a=1 b=2"},
		{"changes", false, []string{"n/a=4", "n/b", "n/d=5", "other/c"}, "a:1>4 b:2>- d:->5", "a=4 d=5"},
		{"what nobody knows goes", false, []string{"n/x"}, "", "a=4 d=5"},
		{"unreadable", false, []string{"n/a=one", "n/e=two"}, "n/a! n/e!", "a=4 d=5"},
		{"a snapshot later", true, []string{"n/a=4", "n/f=6"}, "a:4>4 d:5>- f:->6", "a=4 f=6"},
		{"unreadable in a snapshot", true, []string{"n/a=one"}, "f:6>- n/a!", "a=4"},
		{"nothing left", true, nil, "a:4>-", ""},
	} {
		told, have := w.apply(step.snapshot, step.events...)
		if diff := cmp.Diff([]string{step.told, step.have}, []string{told, have}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if _, ok := w.Get("a"); ok {
		t.Error("a record is there that has gone")
	}
}
