package cni

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNotes(t *testing.T) {
	dir := NotesDir(filepath.Join(t.TempDir(), "contiv", "cni.sock"))
	if notes, err := Notes(dir); len(notes) != 0 || err != nil {
		t.Fatalf("before any note: %v, %v", notes, err)
	}
	want := []Note{{"c1", "eth0"}, {"c1", "net@1"}, {"c2.a_b-c", "eth0"}}
	for _, n := range append(want, want[0]) {
		if err := n.Leave(dir); err != nil {
			t.Fatal(err)
		}
	}
	if notes, err := Notes(dir); err != nil || !cmp.Equal(notes, want) {
		t.Errorf("notes %v, %v; expected %v", notes, err, want)
	}
	for _, n := range []Note{{"../c1", "eth0"}, {"", "eth0"}, {"c1", ""}, {"c1@x", "eth0"}, {"c1", "a/b"}} {
		if err := n.Leave(dir); err == nil {
			t.Errorf("a note %q was left", n)
		}
		if was, err := n.Drop(dir); was || err != nil {
			t.Errorf("note %q: %v, %v", n, was, err)
		}
	}
	for _, expected := range []bool{true, false} {
		if was, err := want[1].Drop(dir); was != expected || err != nil {
			t.Errorf("drop: %v, %v; expected %v", was, err, expected)
		}
	}
	if notes, _ := Notes(dir); len(notes) != 2 {
		t.Errorf("left are %v", notes)
	}
}
