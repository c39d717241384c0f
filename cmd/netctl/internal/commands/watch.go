package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

func watchFlag() cli.Flag {
	return &cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "then print a line for each change, until interrupted"}
}

// verbs is as wide as the widest word for a change.
const verbs = len(contivmodel.NoticeChanged)

// follow prints the objects that keep wants, and then what happens to them until ctx
// ends: a line each, with the cells of the table.
func (l listing[T, O]) follow(ctx context.Context, cmd *cli.Command, c *client.Client, keep func(*T) bool) error {
	f := &follower[T, O]{listing: l, cmd: cmd, keep: keep, line: l.line(cmd)}
	return refused(c.Watch(ctx, []string{l.kind.Type}, f.take))
}

// line returns what prints a change, as the options want it.
func (l listing[T, O]) line(cmd *cli.Command) func(verb string, obj *T) error {
	switch {
	case cmd.Bool("json"):
		return func(verb string, obj *T) error {
			text, err := json.Marshal(map[string]any{"event": verb, "object": obj})
			if err != nil {
				return &failure{status: exitLocal, err: fmt.Errorf("write as JSON: %w", err)}
			}
			return print(cmd, string(text)+"\n")
		}
	case cmd.Bool("quiet"):
		return func(verb string, obj *T) error { return print(cmd, verb+" "+l.name(obj)+"\n") }
	default:
		return func(verb string, obj *T) error {
			var cells strings.Builder
			for i, cell := range l.row(obj) {
				width := 0
				if i < len(l.table.headers) {
					width = max(len(l.table.headers[i]), l.table.dashes[i])
				}
				fmt.Fprintf(&cells, "  %-*s", width, cell)
			}
			return print(cmd, strings.TrimRight(fmt.Sprintf("%-*s%s", verbs, verb, &cells), " ")+"\n")
		}
	}
}

// follower is what a listing that goes on has printed.
type follower[T, O any] struct {
	listing[T, O]
	cmd  *cli.Command
	keep func(*T) bool
	line func(verb string, obj *T) error

	known map[string]*T // nil: nothing has been printed
}

// take prints what a notice says, as far as it is news.
func (f *follower[T, O]) take(n contivmodel.Notice) error {
	objs := map[string]*T{}
	for _, o := range n.Objects {
		obj := new(T)
		if n.Event == contivmodel.NoticeRemoved {
			objs[o.Key] = f.known[o.Key]
			continue
		}
		if err := json.Unmarshal(o.Object, obj); err != nil {
			return refused(fmt.Errorf("%s %s is not what was expected: %w", o.Kind, o.Key, err))
		}
		if f.keep(obj) {
			objs[o.Key] = obj
		}
	}
	switch {
	case n.Event == contivmodel.NoticeReset && f.known == nil:
		f.known = objs
		return f.begin(slices.Sorted(maps.Keys(objs)))
	case n.Event == contivmodel.NoticeReset:
		for _, key := range slices.Sorted(maps.Keys(f.known)) {
			if objs[key] == nil {
				if err := f.gone(key); err != nil {
					return err
				}
			}
		}
	case n.Event == contivmodel.NoticeRemoved:
		for key := range objs {
			return f.gone(key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(objs)) {
		if err := f.there(key, objs[key]); err != nil {
			return err
		}
	}
	return nil
}

// begin prints what there is at first, by the order of keys.
func (f *follower[T, O]) begin(keys []string) error {
	objs := make([]*T, len(keys))
	for i, key := range keys {
		objs[i] = f.known[key]
	}
	if !f.cmd.Bool("json") {
		return f.print(f.cmd, objs)
	}
	for _, obj := range objs {
		if err := f.line("listed", obj); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower[T, O]) gone(key string) error {
	obj, ok := f.known[key]
	if !ok {
		return nil
	}
	delete(f.known, key)
	return f.line(contivmodel.NoticeRemoved, obj)
}

func (f *follower[T, O]) there(key string, obj *T) error {
	old, ok := f.known[key]
	f.known[key] = obj
	switch {
	case !ok:
		return f.line(contivmodel.NoticeAdded, obj)
	case !reflect.DeepEqual(old, obj):
		return f.line(contivmodel.NoticeChanged, obj)
	}
	return nil
}
