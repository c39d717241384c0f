package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/netmaster/reconcile"
)

// loop notes what is asked of it, in a list that all loops of a test share.
type loop struct {
	name    string
	said    *[]string
	refuse  error // of Begin
	failure error // of Settle
	undo    bool
	absent  bool // the change does not concern it
}

func (l *loop) say(what string)     { *l.said = append(*l.said, l.name+" "+what) }
func (l *loop) Run(context.Context) {}

func (l *loop) Begin(context.Context, reconcile.Change) (reconcile.Pending, error) {
	l.say("begins")
	if l.refuse != nil || l.absent {
		return nil, l.refuse
	}
	return l, nil
}

func (l *loop) Settle(context.Context) (bool, error) {
	l.say("settles")
	return l.undo, l.failure
}

func (l *loop) Cancel() { l.say("is cancelled") }

// TestDo goes through what can happen to a change.
func TestDo(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		a, b         loop
		commit, undo error
		want         []string
		fails        string
	}{
		"done":        {want: []string{"a begins", "b begins", "commit", "b settles", "a settles"}},
		"refused":     {b: loop{refuse: down}, want: []string{"a begins", "b begins", "a is cancelled"}, fails: "down"},
		"not made":    {commit: down, want: []string{"a begins", "b begins", "commit", "a is cancelled", "b is cancelled"}, fails: "down"},
		"unconcerned": {b: loop{absent: true}, want: []string{"a begins", "b begins", "commit", "a settles"}},
		"kept":        {b: loop{failure: down}, want: []string{"a begins", "b begins", "commit", "b settles"}, fails: "down"},
		"undone":      {b: loop{failure: down, undo: true}, want: []string{"a begins", "b begins", "commit", "b settles", "undo"}, fails: "down"},
		"not undone": {
			b: loop{failure: down, undo: true}, undo: errors.New("no store"), want: []string{"a begins", "b begins", "commit", "b settles", "undo"},
			fails: "down; network t:n is kept, it could not be taken back: no store",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			c.a.name, c.a.said, c.b.name, c.b.said = "a", &said, "b", &said
			step := func(what string, err error) func(context.Context) error {
				return func(context.Context) error {
					said = append(said, what)
					return err
				}
			}
			err := reconcile.Do(t.Context(), []reconcile.Loop{&c.a, &c.b}, reconcile.Change{Type: "network", Key: "t:n"},
				step("commit", c.commit), step("undo", c.undo))
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}
